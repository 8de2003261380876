package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/cli"
	"github.com/flotilla-sh/flotilla/internal/memapi"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// testHub is a hub in memory behind a real server.
type testHub struct {
	client.Client
	kubeconfig string
	// answer, where set, answers a request in place of the hub.
	answer func(http.ResponseWriter, *http.Request) bool

	mu    sync.Mutex
	asked []string
}

func newTestHub(t *testing.T) *testHub {
	t.Helper()
	api := memapi.NewHub(nil)
	scheme := runtime.NewScheme()
	if err := errors.Join(fleet.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(api.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"team-a", "infra", "cluster-infra-edge", "fleet-local"} {
		if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	h := &testHub{Client: c, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	proxy := &httputil.ReverseProxy{Transport: api, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: "hub"})
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.asked = append(h.asked, r.URL.String())
		h.mu.Unlock()
		if h.answer == nil || !h.answer(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"hub","clusters":[{"name":"hub","cluster":{"server":%q}}],"contexts":[{"name":"hub","context":{"cluster":"hub"}}]}`, server.URL)
	if err := os.WriteFile(h.kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *testHub) add(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		made := o.DeepCopyObject().(client.Object)
		if err := h.Create(t.Context(), made); err != nil {
			t.Fatal(err)
		}
		o.SetResourceVersion(made.GetResourceVersion())
		o.SetUID(made.GetUID())
		if err := h.Status().Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

func (h *testHub) run(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	return flotilla(t, append(args, "--kubeconfig", h.kubeconfig)...)
}

// paths are what was asked for.
func (h *testHub) paths() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func ready(status metav1.ConditionStatus, reason string) []fleet.Condition {
	return []fleet.Condition{{Type: fleet.ConditionReady, Status: status, Reason: reason}, {Type: fleet.ConditionRendered, Status: "True"}}
}

// tenant has a bundle on a cluster of another namespace, which is silent.
func tenant() []client.Object {
	labels := map[string]string{
		fleet.BundleLabel: "web", fleet.BundleNamespaceLabel: "team-a", fleet.ClusterLabel: "edge", fleet.ClusterNamespaceLabel: "infra",
	}
	cluster := &fleet.Cluster{ObjectMeta: named("infra", "edge")}
	cluster.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionOnline, Status: "False", Reason: "Offline", Message: "the agent is silent"}}
	bundle := &fleet.Bundle{ObjectMeta: named("team-a", "web")}
	bundle.Status.ObservedGeneration = 1
	bundle.Status.Conditions = ready("False", "Offline")
	bundle.Status.Summary = fleet.BundleSummary{Offline: 1, DesiredReady: 1}
	deployment := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster-infra-edge", Name: "web", Labels: labels}}
	deployment.Status = fleet.BundleDeploymentStatus{Ready: true, NonModified: true}
	return []client.Object{cluster, &fleet.Cluster{ObjectMeta: named("infra", "other")}, bundle, deployment}
}

func TestStatusOfAHub(t *testing.T) {
	failing := &fleet.HelmOp{ObjectMeta: named("team-a", "db")}
	failing.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionAccepted, Status: "False", Reason: "ChartNotFound", Message: "no version 9"}}
	for name, tt := range map[string]struct {
		objects []client.Object
		refused string
		args    string
		code    int
		says    []string
		not     string
	}{
		"a HelmOp that fails": {
			objects: []client.Object{failing}, args: "status -n team-a --exit-code", code: cli.ExitFailed,
			says: []string{"HELMOP", "HelmOp team-a/db: ChartNotFound", "no version 9", "not everything is ready"},
		},
		"nothing at all": {
			args: "status -n typo --exit-code", code: cli.ExitFailed, says: []string{"error: There are no GitRepos, HelmOps, bundles or clusters in namespace typo"},
		},
		"nothing, and nobody asks": {args: "status -n typo", says: []string{"in namespace typo"}},
		"a cluster elsewhere": {
			objects: tenant(), args: "status -n team-a", says: []string{"infra/edge", "Cluster infra/edge: Offline"}, not: "infra/other",
		},
		"a cluster elsewhere that is not shown": {
			objects: tenant(), refused: "/namespaces/infra/clusters", args: "status -n team-a",
			says: []string{"Bundle team-a/web: Offline", "1 of its clusters does not report"}, not: "Nothing is wrong",
		},
		"deployments that are not shown": {
			objects: tenant(), refused: "/bundledeployments", args: "status -n team-a",
			says: []string{"web     0/1    Offline", "What is on which cluster is not shown: ", "1 of its clusters does not report"},
		},
		"no hub": {
			refused: "nothing is served", args: "status -n team-a", code: cli.ExitFailed, says: []string{"error: this is no hub"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newTestHub(t)
			h.add(t, tt.objects...)
			h.answer = func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case tt.refused == "nothing is served":
					http.NotFound(w, r)
				case tt.refused != "" && strings.HasSuffix(r.URL.Path, tt.refused):
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusForbidden)
					fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"you may not","code":403}`)
				default:
					return false
				}
				return true
			}
			code, out, errs := h.run(t, strings.Fields(tt.args)...)
			for _, want := range tt.says {
				if !strings.Contains(out+errs, want) {
					t.Errorf("%q is not in\n%s%s", want, out, errs)
				}
			}
			if code != tt.code || tt.not != "" && strings.Contains(out+errs, tt.not) {
				t.Errorf("exit code %d, want %d, and not %q:\n%s%s", code, tt.code, tt.not, out, errs)
			}
			for _, path := range h.paths() {
				if !strings.HasPrefix(path, "/apis/fleet.cattle.io/v1alpha1/") {
					t.Errorf("asked for %s", path)
				}
			}
		})
	}
}

// A hub that takes the connection and says nothing must not keep anybody.
func TestSilentHubCanBeInterrupted(t *testing.T) {
	for _, args := range []string{"status", "status -w", "apply web one"} {
		t.Run(args, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for name, text := range map[string]string{"one/a.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"} {
				if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			h := newTestHub(t)
			ctx, interrupt := context.WithCancel(t.Context())
			h.answer = func(_ http.ResponseWriter, r *http.Request) bool {
				interrupt()
				select {
				case <-r.Context().Done():
				case <-time.After(time.Minute):
				}
				return true
			}
			done := make(chan string, 1)
			go func() {
				var errs bytes.Buffer
				code := cli.Run(ctx, cli.Env{Args: append(strings.Fields(args), "--kubeconfig", h.kubeconfig), Out: &bytes.Buffer{}, Err: &errs})
				done <- fmt.Sprintf("%d %s", code, errs.String())
			}()
			select {
			case got := <-done:
				if got != "130 error: interrupted\n" {
					t.Errorf("it ends with %q", got)
				}
			case <-time.After(30 * time.Second):
				t.Error("it goes on although it was interrupted")
			}
		})
	}
}

// lines are written by one and read by another.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Who watches one namespace is sent nothing of another.
func TestWatchAsksForWhatItShows(t *testing.T) {
	h := newTestHub(t)
	h.add(t, tenant()...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs lines
	done := make(chan int, 1)
	go func() {
		done <- cli.Run(ctx, cli.Env{Args: []string{"status", "-n", "team-a", "-w", "--kubeconfig", h.kubeconfig}, Out: &out, Err: &errs})
	}()
	until := func(what string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !strings.Contains(out.String(), what); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%q is not in\n%s%s", what, out.String(), errs.String())
			}
		}
	}
	until("Cluster infra/edge: Offline")
	cluster := &fleet.Cluster{}
	if err := h.Get(ctx, client.ObjectKey{Namespace: "infra", Name: "edge"}, cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Status.Conditions[0].Status = "True"
	if err := h.Status().Update(ctx, cluster); err != nil {
		t.Fatal(err)
	}
	until("Bundle team-a/web on cluster infra/edge: ")
	cancel()
	if code := <-done; code != cli.ExitOK {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	for _, asked := range h.paths() {
		at, err := url.Parse(asked)
		if err != nil {
			t.Fatal(err)
		}
		deployments := strings.HasSuffix(at.Path, "/bundledeployments")
		if deployments != (at.Query().Get("labelSelector") == fleet.BundleNamespaceLabel+"=team-a") || !deployments && !strings.Contains(at.Path, "/namespaces/") {
			t.Errorf("asked for %s", asked)
		}
	}
}

func TestApplyToAHub(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("one", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("one/a.yaml", []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newTestHub(t)
	apply := func(wantCode int, want string, args ...string) {
		t.Helper()
		code, out, errs := h.run(t, append([]string{"apply", "web", "one", "-n", "fleet-local"}, args...)...)
		if code != wantCode || !strings.Contains(out+errs, want) {
			t.Errorf("%v: exit code %d, %s%s, want %d, %s", args, code, out, errs, wantCode, want)
		}
	}
	commit := func() string {
		t.Helper()
		b := &fleet.Bundle{}
		if err := h.Get(t.Context(), client.ObjectKey{Namespace: "fleet-local", Name: "web-one"}, b); err != nil {
			t.Fatal(err)
		}
		return b.Labels[fleet.CommitLabel]
	}
	apply(cli.ExitOK, "created", "--commit", "abc")
	apply(cli.ExitOK, "unchanged", "--commit", "abc")
	apply(cli.ExitOK, "warning: bundle fleet-local/web-one: it goes to no cluster: namespace fleet-local has no cluster group default", "--commit", "abc")
	if err := h.Create(t.Context(), &fleet.ClusterGroup{ObjectMeta: named("fleet-local", "default")}); err != nil {
		t.Fatal(err)
	}
	if _, out, errs := h.run(t, "apply", "web", "one", "-n", "fleet-local", "--commit", "abc"); strings.Contains(out+errs, "warning") {
		t.Errorf("a warning although there is a group: %s", errs)
	}
	apply(cli.ExitOK, "unchanged", "--commit", "abc")
	if commit() != "abc" {
		t.Errorf("the commit is %q", commit())
	}
	// What is applied without a commit is not of the one before.
	apply(cli.ExitOK, "updated")
	if commit() != "" {
		t.Errorf("the commit is %q, and none was named", commit())
	}
	b := &fleet.Bundle{ObjectMeta: named("fleet-local", "web-one")}
	if err := h.Patch(t.Context(), b, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["flotilla.sh/finalizer"]}}`))); err != nil {
		t.Fatal(err)
	}
	if err := h.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	apply(cli.ExitFailed, "it is being deleted")
}
