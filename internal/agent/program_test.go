package agent_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/flotilla-sh/flotilla/internal/lab/labtest"
)

var bundles = flag.Int("bundles", 3, "deployments of ten objects whose memory is shown")

// TestProgram runs the agent as a process of its own, kills it, and ends it
// in the friendly way; it shows what memory it takes.
func TestProgram(t *testing.T) {
	w := newWorld(t)
	program := labtest.Program(t, "flotilla-agent")
	kubeconfig := w.kubeconfig(t)
	run := func() *exec.Cmd {
		cmd := exec.Command(program, "--kubeconfig", kubeconfig, "--hub-kubeconfig", kubeconfig, "--namespace", w.state)
		var log strings.Builder
		cmd.Stderr = &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			if t.Failed() {
				t.Log(log.String())
			}
		})
		return cmd
	}
	cmd := run()
	w.deploy("first", []string{configMap(w.ns("shop"), "first", "1")})
	w.until("first", ready)
	t.Logf("with one deployment: %s", memory(t, cmd.Process.Pid))
	w.deployMany(*bundles)
	t.Logf("with %d deployments of 10 objects: %s", *bundles, memory(t, cmd.Process.Pid))
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	cmd = run()
	w.deploy("first", []string{configMap(w.ns("shop"), "first", "2")})
	w.until("first", ready)
	t.Logf("restarted: %s", memory(t, cmd.Process.Pid))
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it does not end well: %v", err)
	}
}

func (w *world) deployMany(n int) {
	w.t.Helper()
	for i := range n {
		var objects []string
		for o := range 10 {
			objects = append(objects, configMap(w.ns("shop"), fmt.Sprintf("b%d-o%d", i, o), "1"))
		}
		w.deploy(fmt.Sprintf("b%d", i), objects)
	}
	for i := range n {
		w.until(fmt.Sprintf("b%d", i), ready)
	}
}

// kubeconfig writes a kubeconfig whose context has the cluster's namespace.
func (w *world) kubeconfig(t *testing.T) string {
	t.Helper()
	c := server.config
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthority: c.CAFile, CertificateAuthorityData: c.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{
		ClientCertificate: c.CertFile, ClientCertificateData: c.CertData,
		ClientKey: c.KeyFile, ClientKeyData: c.KeyData, Token: c.BearerToken,
	}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: w.namespace}
	config.CurrentContext = "c"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

var memoryLine = regexp.MustCompile(`(?m)^(VmRSS|RssAnon|VmHWM):\s+(\d+) kB`)

// memory reads what a process takes of memory.
func memory(t *testing.T, pid int) string {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return err.Error()
	}
	var parts []string
	for _, m := range memoryLine.FindAllStringSubmatch(string(raw), -1) {
		kb, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, fmt.Sprintf("%s %d MB", m[1], kb>>10))
	}
	return strings.Join(parts, ", ")
}
