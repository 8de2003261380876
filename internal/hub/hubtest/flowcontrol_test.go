package hubtest_test

import (
	"context"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/charts"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/source"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const systemNamespace = "cattle-fleet-system"

// chart renders the hub's chart.
func (w *world) chart(values map[string]any) []*unstructured.Unstructured {
	w.Helper()
	var files []source.File
	w.must(fs.WalkDir(charts.FS, "flotilla", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(charts.FS, path)
		files = append(files, source.File{Path: strings.TrimPrefix(path, "flotilla/"), Data: data})
		return err
	}))
	result, err := render.New().Render(w.ctx, render.Request{
		Files: files, Bundle: "flotilla", Capabilities: render.Capabilities{KubeVersion: "v1.36.3"},
		Options: fleet.BundleDeploymentOptions{DefaultNamespace: systemNamespace, Helm: &fleet.HelmOptions{ReleaseName: "flotilla", Values: &fleet.GenericMap{Data: values}}},
	})
	w.must(err)
	var all []*unstructured.Unstructured
	for _, o := range result.Objects {
		obj := &unstructured.Unstructured{}
		w.must(obj.UnmarshalJSON(o.JSON))
		all = append(all, obj)
	}
	return all
}

// installFlowControl applies what the hub's chart says of priorities.
func (w *world) installFlowControl() {
	w.Helper()
	for _, obj := range w.chart(nil) {
		if strings.HasPrefix(obj.GetAPIVersion(), flowcontrolv1.GroupName) {
			w.create(obj)
			w.Cleanup(func() { w.must(client.IgnoreNotFound(w.client.Delete(context.Background(), obj))) })
		}
	}
}

// levelOf reads which priority level served each request.
type levelOf struct {
	next http.RoundTripper
	mu   sync.Mutex
	uid  string
	code int
}

func (l *levelOf) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := l.next.RoundTrip(r)
	if err == nil {
		l.mu.Lock()
		l.uid, l.code = res.Header.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID), res.StatusCode
		l.mu.Unlock()
	}
	return res, err
}

// as returns a client that acts as somebody, and what served it.
func (w *world) as(user string, groups ...string) (kubernetes.Interface, rest.Interface, *levelOf) {
	w.Helper()
	level := &levelOf{}
	config := rest.CopyConfig(server.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { level.next = next; return level })
	c, err := kubernetes.NewForConfig(config)
	w.must(err)
	return c, c.CoordinationV1().RESTClient(), level
}

func (w *world) serviceAccount(namespace, name string) (kubernetes.Interface, rest.Interface, *levelOf) {
	return w.as("system:serviceaccount:"+namespace+":"+name, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
}

// level returns the UID of a priority level.
func (w *world) level(name string) string {
	w.Helper()
	level := &flowcontrolv1.PriorityLevelConfiguration{}
	w.must(w.client.Get(w.ctx, client.ObjectKey{Name: name}, level))
	return string(level.UID)
}

const fleetPath = "/apis/fleet.cattle.io/v1alpha1/"

// TestAgentsHaveAPriorityLevel asks the API server how it classifies those who
// talk to it.
func TestAgentsHaveAPriorityLevel(t *testing.T) {
	w := newWorld(t)
	w.installFlowControl()
	agents, low, users := w.level("flotilla-agents"), w.level("workload-low"), w.level("global-default")
	get := func(path string) func(rest.Interface) *rest.Request {
		return func(c rest.Interface) *rest.Request { return c.Get().AbsPath(path) }
	}
	patch := func(path string) func(rest.Interface) *rest.Request {
		return func(c rest.Interface) *rest.Request {
			return c.Patch("application/merge-patch+json").AbsPath(path).Body([]byte("{}"))
		}
	}
	update := func(path string) func(rest.Interface) *rest.Request {
		return func(c rest.Interface) *rest.Request {
			return c.Put().AbsPath(path).Body(&coordinationv1.Lease{ObjectMeta: w.meta("x")})
		}
	}
	own := fleetPath + "namespaces/" + w.namespace + "/"
	lease := "/apis/coordination.k8s.io/v1/namespaces/" + w.namespace + "/leases/x"
	for name, tt := range map[string]struct {
		namespace, account string
		request            func(rest.Interface) *rest.Request
		want               string
	}{
		"an agent lists":            {w.namespace, fleet.AgentName, get(own + "bundledeployments"), agents},
		"an agent reports":          {w.namespace, fleet.AgentName, patch(own + "bundledeployments/x/status"), agents},
		"an agent fetches":          {w.namespace, fleet.AgentName, get("/api/v1/namespaces/" + fleet.ContentNamespace + "/configmaps/x"), agents},
		"an agent's heartbeat":      {w.namespace, fleet.AgentName, patch(lease), agents},
		"another's leader election": {"other", "controller", update(lease), low},
		"another controller":        {"other", "controller", get("/api/v1/namespaces/other/pods"), low},
		"the hub lists":             {systemNamespace, "flotilla-hub", get(fleetPath + "bundledeployments"), low},
		"the hub writes":            {systemNamespace, "flotilla-hub", patch(own + "bundledeployments/x"), low},
		"a user lists":              {"", "alice", get(fleetPath + "bundledeployments"), users},
		"a user reads pods":         {"", "alice", get("/api/v1/pods"), users},
	} {
		t.Run(name, func(t *testing.T) {
			_, c, served := w.serviceAccount(tt.namespace, tt.account)
			if tt.namespace == "" {
				_, c, served = w.as(tt.account)
			}
			// It takes a moment until the API server follows new priorities.
			// Most of this is forbidden, which is judged afterwards.
			err := poll(func() (bool, error) {
				_ = tt.request(c).Do(w.ctx).Error()
				return served.uid == tt.want, nil
			})
			if err != nil {
				t.Errorf("served by level %s, want %s", served.uid, tt.want)
			}
		})
	}
}

// TestUsersAreServedBesideAStorm lets many agents ask without a pause, and a
// user work meanwhile.
func TestUsersAreServedBesideAStorm(t *testing.T) {
	w := newWorld(t)
	w.installFlowControl()
	agents, users := w.level("flotilla-agents"), w.level("global-default")
	// A small share, so that a small storm fills it.
	w.must(w.client.Patch(w.ctx, &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "flotilla-agents"}},
		client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"limited":{"nominalConcurrencyShares":1,"borrowingLimitPercent":0}}}`))))
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: w.meta("users"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "alice"}},
	})
	_, agent, served := w.serviceAccount(w.namespace, fleet.AgentName)
	list := fleetPath + "namespaces/" + w.namespace + "/bundledeployments"
	w.must(poll(func() (bool, error) {
		_ = agent.Get().AbsPath(list).Do(w.ctx).Error()
		return served.uid == agents, nil
	}))
	ctx, stop := context.WithCancel(w.ctx)
	var storm sync.WaitGroup
	defer storm.Wait()
	defer stop()
	for range 300 {
		storm.Go(func() {
			for ctx.Err() == nil {
				_ = agent.Get().AbsPath(list).MaxRetries(0).Do(ctx).Error()
			}
		})
	}
	queued := func() bool { return w.flow("current_inqueue_requests", "flotilla-agents") > 0 }
	w.must(poll(func() (bool, error) { return queued(), nil }))
	before := w.flow("rejected_requests_total", "global-default")
	alice, _, level := w.as("alice")
	for i := range 20 {
		made := &corev1.ConfigMap{ObjectMeta: w.meta("user-" + strconv.Itoa(i))}
		if _, err := alice.CoreV1().ConfigMaps(w.namespace).Create(w.ctx, made, metav1.CreateOptions{}); err != nil || level.code != http.StatusCreated {
			t.Fatalf("a user's write: %d, %v", level.code, err)
		}
		if level.uid != users {
			t.Fatalf("a user is served by level %s, want %s", level.uid, users)
		}
	}
	// The storm goes on: else nothing was shown.
	w.must(poll(func() (bool, error) { return queued(), nil }))
	if n := w.flow("rejected_requests_total", "global-default") - before; n > 0 {
		t.Errorf("%v requests of users were rejected", n)
	}
}

// flow sums up a metric of the API server for a priority level.
func (w *world) flow(metric, level string) float64 {
	w.Helper()
	c, err := kubernetes.NewForConfig(server.config)
	w.must(err)
	raw, err := c.RESTClient().Get().AbsPath("/metrics").Do(w.ctx).Raw()
	w.must(err)
	sum := 0.0
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "apiserver_flowcontrol_"+metric+"{") && strings.Contains(line, `priority_level="`+level+`"`) {
			n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
			w.must(err)
			sum += n
		}
	}
	return sum
}
