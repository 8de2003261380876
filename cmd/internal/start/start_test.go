package start

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://hub.example:6443"}}]
users: [{name: u, user: {token: t}}]
`

func TestConnect(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for file, want := range map[string]string{
		"":        "no --kubeconfig was given, and this is no pod",
		"nowhere": "--kubeconfig nowhere: stat nowhere: no such file or directory",
	} {
		if _, err := Connect(file, "flotilla-hub"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", file, err, want)
		}
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := Connect(file, "flotilla-hub")
	if err != nil || config.UserAgent != "flotilla-hub" || config.Host != "https://hub.example:6443" {
		t.Errorf("%v, %v", config, err)
	}
}

func TestLogger(t *testing.T) {
	if _, err := Logger("loud"); err == nil || !strings.Contains(err.Error(), `--log-level "loud"`) {
		t.Error(err)
	}
	log, err := Logger("warn")
	if err != nil || log.Enabled() {
		t.Errorf("info lines are written at level warn, or %v", err)
	}
}
