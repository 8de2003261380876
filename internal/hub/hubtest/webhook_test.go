package hubtest_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/hub"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// freeAddress is an address that nobody listens on.
func (w *world) freeAddress() string {
	w.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	defer l.Close()
	return l.Addr().String()
}

// certificate writes that of httptest, and returns a client that trusts it.
func (w *world) certificate() (cert, key string, trusting *http.Client) {
	w.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	dir := w.TempDir()
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	der, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	w.must(err)
	w.must(os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	w.must(os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return cert, key, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
}

func TestWebhook(t *testing.T) {
	w := newWhole(t)
	cert, key, web := w.certificate()
	address := w.freeAddress()
	w.configure = func(o *hub.Options) {
		o.Webhooks.Address, o.Webhooks.CertFile, o.Webhooks.KeyFile = address, cert, key
	}
	push, url := w.serveGit()
	commit := func(value string) string {
		return push("app", map[string]string{"a.yaml": configMap(value)[0].Content})
	}
	first := commit("one")
	w.create(&corev1.Secret{ObjectMeta: w.meta("hook"), StringData: map[string]string{"github": "hunter2"}})
	repo := &fleet.GitRepo{ObjectMeta: w.meta("app"), Spec: fleet.GitRepoSpec{
		Repo: url + "/app.git", Branch: "main", DisablePolling: true, WebhookSecret: "hook",
	}}
	w.create(repo)
	w.start()
	w.eventually("the first commit", func() bool { return w.exists(repo) && repo.Status.Commit == first })

	call := func(key, pushed string) int {
		body := fmt.Appendf(nil, `{"ref":"refs/heads/main","after":%q,"repository":{"clone_url":%q}}`, pushed, strings.Replace(url, "http:", "https:", 1)+"/App")
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write(body)
		req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, "https://"+address+"/any/path", bytes.NewReader(body))
		w.must(err)
		req.Header.Set("X-GitHub-Event", "push")
		req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		res, err := web.Do(req)
		w.must(err)
		defer res.Body.Close()
		return res.StatusCode
	}
	second := commit("two")
	if code := call("guess", second); code != http.StatusUnauthorized {
		t.Errorf("a stranger was answered %d", code)
	}
	// What is pushed is what the server says, whatever the caller says.
	start := time.Now()
	if code := call("hunter2", strings.Repeat("f", 40)); code != http.StatusOK {
		t.Fatalf("answered %d", code)
	}
	w.eventually("the second commit", func() bool { return w.exists(repo) && repo.Status.Commit == second })
	t.Logf("a push was seen %s after the webhook", time.Since(start))
	if repo.Status.WebhookCommit != strings.Repeat("f", 40) || repo.Status.LastWebhookTime.IsZero() || repo.Spec.PollingInterval != nil {
		t.Errorf("status %+v", repo.Status)
	}
}

func TestChartServesWebhooks(t *testing.T) {
	w := newWorld(t)
	for name, tt := range map[string]struct {
		values map[string]any
		kinds  string
	}{
		"off":   {nil, "Deployment"},
		"plain": {map[string]any{"enabled": true}, "Deployment Service"},
		"behind an ingress": {map[string]any{"enabled": true, "ingress": map[string]any{
			"enabled": true, "host": "hooks.example.org", "tlsSecret": "web", "className": "nginx", "annotations": map[string]any{"a": "b"}}}, "Deployment Ingress Service"},
		"over TLS, for all hosts": {map[string]any{"enabled": true, "tlsSecret": "tls", "service": map[string]any{"type": "LoadBalancer"},
			"ingress": map[string]any{"enabled": true}}, "Deployment Ingress Service"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{T: t, client: w.client, ctx: t.Context(), namespace: w.namespace}
			var kinds []string
			for _, obj := range w.chart(map[string]any{"webhook": tt.values}) {
				if kind := obj.GetKind(); kind == "Deployment" || kind == "Service" || kind == "Ingress" {
					kinds = append(kinds, kind)
					obj.SetNamespace(w.namespace)
					w.must(w.client.Create(w.ctx, obj, client.DryRunAll, client.FieldValidation("Strict")))
				}
			}
			if slices.Sort(kinds); strings.Join(kinds, " ") != tt.kinds {
				t.Errorf("the chart has %v, want %s", kinds, tt.kinds)
			}
		})
	}
}
