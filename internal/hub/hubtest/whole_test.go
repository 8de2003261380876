package hubtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/apireq"
	"github.com/flotilla-sh/flotilla/internal/faultproxy"
	"github.com/flotilla-sh/flotilla/internal/hub"
	"github.com/flotilla-sh/flotilla/internal/lab/gitserver"
	"github.com/flotilla-sh/flotilla/internal/lab/labtest"
	"github.com/flotilla-sh/flotilla/internal/names"
	"github.com/flotilla-sh/flotilla/internal/render"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// whole is a hub with all its controllers, in a world of its own, and the
// agents of its clusters as far as the hub can see them.
type whole struct {
	*world
	proxy   *faultproxy.Proxy
	renders atomic.Int32
	// wrap sees the hub's requests as they go out; it may be nil.
	wrap func(http.RoundTripper) http.RoundTripper
	// configure changes what the hub is started with; it may be nil.
	configure func(*hub.Options)
}

func newWhole(t *testing.T) *whole {
	t.Helper()
	w := &whole{world: newWorld(t)}
	w.proxy = faultproxy.New("hub", nil)
	t.Cleanup(w.leave)
	return w
}

// leave deletes the GitRepos of a world, whose servers are gone: the hubs of later
// tests would ask for them without end.
func (w *whole) leave() {
	list := &fleet.GitRepoList{}
	w.must(w.client.List(context.Background(), list))
	for i := range list.Items {
		if of := list.Items[i].Namespace; of == w.namespace || strings.HasPrefix(of, w.namespace+"-") {
			w.drop(&list.Items[i])
		}
	}
}

// Render counts.
func (w *whole) Render(ctx context.Context, req render.Request) (*render.Result, error) {
	w.renders.Add(1)
	return render.New().Render(ctx, req)
}

// start runs a hub that remembers nothing of an earlier one.
func (w *whole) start() (stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	config := rest.CopyConfig(server.config)
	if w.wrap != nil {
		config.Wrap(w.wrap)
	}
	done := make(chan error, 1)
	options := hub.Options{
		Config: w.proxy.Connect(config, cancel), Namespace: w.namespace, CacheDir: w.TempDir(),
		Identity: "hub", Renderer: w, MetricsAddress: "0",
	}
	if w.configure != nil {
		w.configure(&options)
	}
	go func() { done <- hub.Run(ctx, options) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && ctx.Err() == nil {
			w.Errorf("the hub ended: %v", err)
		}
	})
	w.Cleanup(stop)
	return stop
}

var errNotYet = errors.New("not yet")

// eventually polls with the patience that a slow machine needs.
func (w *whole) eventually(what string, done func() bool) {
	w.Helper()
	labtest.Eventually(w, what, func() error {
		if !done() {
			return errNotYet
		}
		return nil
	})
}

// work is what the hub asks for besides its heartbeat and its watches.
func work(r apireq.Request) bool {
	return r.Verb != apireq.Watch && r.Verb != apireq.Other && r.Resource != "leases"
}

func writesOf(r apireq.Request) bool { return work(r) && r.Writes() }

// rest waits until the hub has not asked anything for a while that is longer
// than whatever it puts off.
func (w *whole) rest() {
	w.Helper()
	seen, since := -1, time.Now()
	quiet := func() bool {
		if n := len(w.proxy.Seen(work)); n != seen {
			seen, since = n, time.Now()
		}
		return time.Since(since) > 2*time.Second
	}
	for deadline := time.Now().Add(2 * time.Minute); !quiet(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			all := w.proxy.Seen(work)
			w.Fatalf("the hub does not come to rest within two minutes; it has asked last: %v", all[max(0, len(all)-20):])
		}
	}
}

// clusters makes clusters whose agents have reported.
func (w *whole) clusters(n int) []string {
	w.Helper()
	var spaces []string
	for i := range n {
		name := fmt.Sprintf("c%02d", i)
		w.create(&fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{"env": "test"}}})
		spaces = append(spaces, names.ClusterNamespace(w.namespace, name))
	}
	w.create(&fleet.ClusterGroup{ObjectMeta: w.meta("all"), Spec: fleet.ClusterGroupSpec{Selector: &metav1.LabelSelector{}}})
	for _, space := range spaces {
		report := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: fleet.CapabilitiesName}}
		w.eventually("register "+space, func() bool { return w.exists(report) })
		base := report.DeepCopy()
		report.Data = map[string]string{fleet.CapabilitiesVersionKey: "v1.36.3", fleet.CapabilitiesAPIsKey: "v1/ConfigMap N\n"}
		w.must(w.client.Patch(w.ctx, report, client.MergeFrom(base)))
	}
	return spaces
}

// agents reports every deployment ready, as often as the hub changes it, until
// each of the namespaces has these bundles and all is reported.
func (w *whole) agents(spaces []string, bundles ...string) {
	w.Helper()
	w.eventually("deploy", func() bool {
		there := 0
		for _, space := range spaces {
			list := &fleet.BundleDeploymentList{}
			w.must(w.client.List(w.ctx, list, client.InNamespace(space)))
			for i := range list.Items {
				w.reportReady(&list.Items[i])
			}
			there += len(list.Items)
		}
		return there == len(spaces)*len(bundles) && w.allReady(bundles...)
	})
}

func (w *whole) reportReady(d *fleet.BundleDeployment) {
	w.Helper()
	if d.Status.AppliedDeploymentID == d.Spec.DeploymentID {
		return
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"appliedDeploymentID": d.Spec.DeploymentID, "ready": true, "nonModified": true, "observedGeneration": d.Generation,
		"resourceCounts": map[string]int{"desiredReady": 1, "ready": 1},
	}})
	w.must(err)
	w.must(w.client.Status().Patch(w.ctx, d, client.RawPatch("application/merge-patch+json", patch)))
}

// allReady tells whether the roll-ups of bundles are true for their newest
// generation.
func (w *whole) allReady(bundles ...string) bool {
	w.Helper()
	for _, name := range bundles {
		b := &fleet.Bundle{ObjectMeta: w.meta(name)}
		if !w.exists(b) || b.Status.ObservedGeneration != b.Generation || !fleet.IsConditionTrue(b.Status.Conditions, fleet.ConditionReady) {
			return false
		}
	}
	return true
}

func configMap(value string) []fleet.BundleResource {
	return []fleet.BundleResource{{Name: "a.yaml", Content: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {v: " + value + "}\n"}}
}

// bundle makes a Bundle for all clusters.
func (w *whole) bundle(name string) *fleet.Bundle {
	w.Helper()
	b := &fleet.Bundle{ObjectMeta: w.meta(name)}
	b.Spec.Resources = configMap("one")
	b.Spec.Targets = []fleet.BundleTarget{{ClusterSelector: &metav1.LabelSelector{}}}
	w.create(b)
	return b
}

// serveGit starts a Git server. Its repository NAME, which a first commit makes,
// is at url/NAME.git.
func (w *whole) serveGit() (commit func(name string, files map[string]string) string, url string) {
	w.Helper()
	server, err := gitserver.New(w.TempDir())
	w.must(err)
	web := httptest.NewServer(server)
	w.Cleanup(web.Close)
	return func(name string, files map[string]string) string {
		w.Helper()
		c, err := server.Commit(w.ctx, name, gitserver.Commit{Message: "test", Files: files})
		w.must(err)
		return c
	}, web.URL
}

// repo makes a GitRepo with one bundle, which is a chart.
func (w *whole) repo(name string) (bundle string) {
	w.Helper()
	commit, url := w.serveGit()
	commit(name, map[string]string{
		"Chart.yaml":       "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: default}\ndata: {kube: {{ .Capabilities.KubeVersion }}, v: {{ .Values.v }}}\n",
		"fleet.yaml":       "helm: {values: {v: a}}\n",
	})
	w.create(&fleet.GitRepo{ObjectMeta: w.meta(name), Spec: fleet.GitRepoSpec{
		Repo: url + "/" + name + ".git", Branch: "main",
		Targets: []fleet.GitTarget{{ClusterSelector: &metav1.LabelSelector{}}},
	}})
	list := &fleet.BundleList{}
	w.eventually("pack "+name, func() bool {
		w.must(w.client.List(w.ctx, list, client.InNamespace(w.namespace), client.MatchingLabels{fleet.RepoLabel: name}))
		return len(list.Items) == 1
	})
	return list.Items[0].Name
}

// TestRestartWritesAndRendersNothing starts a second hub, which has lost all
// that is not on the API server.
func TestRestartWritesAndRendersNothing(t *testing.T) {
	w := newWhole(t)
	stop := w.start()
	spaces := w.clusters(5)
	packed := w.repo("repo")
	byHand := w.bundle("by-hand")
	w.agents(spaces, byHand.Name, packed)
	w.rest()
	if w.renders.Load() == 0 {
		t.Fatal("the first hub has rendered nothing: nothing is shown")
	}
	stop()
	w.renders.Store(0)
	w.proxy.Reset()
	w.start()
	w.eventually("look at everything", func() bool { return len(w.proxy.Seen(work)) > 0 })
	w.rest()
	for _, r := range w.proxy.Seen(writesOf) {
		t.Errorf("a restarted hub writes: %s", r)
	}
	if n := w.renders.Load(); n > 0 {
		t.Errorf("a restarted hub renders %d times", n)
	}
	// It is at work.
	w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(byHand), byHand))
	base := byHand.DeepCopy()
	byHand.Spec.Resources = configMap("two")
	w.must(w.client.Patch(w.ctx, byHand, client.MergeFrom(base)))
	w.agents(spaces, byHand.Name, packed)
	count := map[string]int{}
	for _, r := range w.proxy.Seen(writesOf) {
		count[r.Verb+" "+r.Path()]++
	}
	if n := count["patch bundledeployments"]; n != len(spaces) {
		t.Errorf("a change of one bundle: %v, want %d patches of deployments", count, len(spaces))
	}
}

// TestReadyIsOfTheNewestGeneration watches a Bundle that is changed, as `kubectl wait` does:
// the new generation never stands beside the word on the one before.
func TestReadyIsOfTheNewestGeneration(t *testing.T) {
	w := newWhole(t)
	w.start()
	spaces := w.clusters(2)
	b := w.bundle("web")
	w.agents(spaces, b.Name)
	watching, err := client.NewWithWatch(server.config, client.Options{Scheme: w.client.Scheme()})
	w.must(err)
	events, err := watching.Watch(w.ctx, &fleet.BundleList{}, client.InNamespace(w.namespace))
	w.must(err)
	defer events.Stop()
	w.exists(b)
	base := b.DeepCopy()
	b.Spec.Resources = configMap("two")
	w.must(w.client.Patch(w.ctx, b, client.MergeFrom(base)))
	// Nobody reports, so it is Ready no more until the end.
	w.rest()
	w.exists(b)
	if b.Status.ObservedGeneration != b.Generation || b.Status.Summary.Ready != 0 {
		t.Fatalf("the change has not arrived: %+v", b.Status)
	}
	for event := range events.ResultChan() {
		seen := event.Object.(*fleet.Bundle)
		if seen.Status.ObservedGeneration == b.Generation && fleet.IsConditionTrue(seen.Status.Conditions, fleet.ConditionReady) {
			t.Error("it is called Ready for what ran before")
		}
		if seen.ResourceVersion == b.ResourceVersion {
			return
		}
	}
	t.Error("the watch has ended early")
}

// crowd counts writes that are under way, and makes each slow.
type crowd struct {
	next      http.RoundTripper
	now, most atomic.Int32
}

func (c *crowd) RoundTrip(r *http.Request) (*http.Response, error) {
	if apireq.Of(r).Resource != "bundledeployments" || !apireq.Of(r).Writes() {
		return c.next.RoundTrip(r)
	}
	n := c.now.Add(1)
	defer c.now.Add(-1)
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	time.Sleep(5 * time.Millisecond)
	return c.next.RoundTrip(r)
}

// TestOverloadSlowsDown lets the API server be slow and refuse with 429: the
// hub waits as asked, with a bound on what is under way, and asks for nothing
// more often than it is refused.
func TestOverloadSlowsDown(t *testing.T) {
	w := newWhole(t)
	seen := &crowd{}
	w.wrap = func(next http.RoundTripper) http.RoundTripper { seen.next = next; return seen }
	w.start()
	spaces := w.clusters(24)
	w.proxy.Reset()
	const refusals = 20
	var refused atomic.Int32
	w.proxy.Use(func(r faultproxy.Request) faultproxy.Fault {
		if r.Resource == "bundledeployments" && r.Writes() && refused.Add(1) <= refusals {
			return faultproxy.Fault{Kind: faultproxy.TooMany, For: time.Second}
		}
		return faultproxy.Fault{}
	})
	b := w.bundle("storm")
	w.agents(spaces, b.Name)
	w.rest()
	writes := w.proxy.Seen(func(r apireq.Request) bool { return r.Writes() && r.Resource == "bundledeployments" })
	if want := len(spaces) + refusals; len(writes) != want {
		t.Errorf("%d writes of deployments, want %d: one for each, and one more for each that was refused", len(writes), want)
	}
	if n := seen.most.Load(); n > 16 {
		t.Errorf("%d writes of one bundle were under way at once, want no more than 16", n)
	}
	list := &fleet.BundleDeploymentList{}
	w.must(w.client.List(w.ctx, list, client.MatchingLabels{fleet.BundleNamespaceLabel: w.namespace}))
	if len(list.Items) != len(spaces) {
		t.Errorf("%d deployments, want %d", len(list.Items), len(spaces))
	}
}

// TestObjectsStayLean looks at the size of what there is most of.
func TestObjectsStayLean(t *testing.T) {
	w := newWhole(t)
	w.start()
	spaces := w.clusters(2)
	packed := w.repo("repo-with-a-long-name-as-people-give-them")
	w.agents(spaces, packed)
	d := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: spaces[0], Name: packed}}
	if !w.exists(d) {
		t.Fatal(apierrors.NewNotFound(fleet.SchemeGroupVersion.WithResource("bundledeployments").GroupResource(), packed))
	}
	raw, err := json.Marshal(d)
	w.must(err)
	record, err := json.Marshal(d.ManagedFields)
	w.must(err)
	if len(raw)-len(record) > 1600 || len(record) > 1200 {
		t.Errorf("a deployment has %d bytes, and %d of managed fields", len(raw)-len(record), len(record))
	}
	if strings.Contains(string(record), "f:conditions") {
		t.Error("every condition has its own owner: the status is to have one")
	}
}
