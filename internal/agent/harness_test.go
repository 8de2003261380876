package agent_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-sh/flotilla/internal/agent"
	"github.com/flotilla-sh/flotilla/internal/apireq"
	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/content/kube"
	"github.com/flotilla-sh/flotilla/internal/content/registry"
	"github.com/flotilla-sh/flotilla/internal/digest"
	"github.com/flotilla-sh/flotilla/internal/faultproxy"
	"github.com/flotilla-sh/flotilla/internal/lab/labtest"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/render/rendertest"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// server is one real API server, which plays the hub and every spoke.
var server struct {
	config *rest.Config
	client client.WithWatch
}

func TestMain(m *testing.M) {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = flag.Set("test.parallel", "6") // most of what these tests do is to wait
	}
	klog.SetLogger(logr.Discard())
	os.Exit(labtest.Main(m, func(s labtest.Server) { server.config, server.client = s.Config, s.Client }))
}

// world is a hub with one cluster in it.
type world struct {
	t         *testing.T
	namespace string
	state     string
	store     *kube.Store
	// registry has the content instead, where it is set.
	registry *registry.Registry
	spoke    *faultproxy.Proxy
	hub      *faultproxy.Proxy
	ctx      context.Context
	stop     func()
	// ended is closed when the agent that was started last has ended.
	ended chan struct{}
	// settle is how long the agent waits before objects leave a bundle.
	settle time.Duration
	// neighbours are the namespaces of Rancher Fleet.
	neighbours []string
	// poll is the time between two looks at the hub; 0 watches.
	poll time.Duration
	// metrics is where the agent's are; nil has none.
	metrics *prometheus.Registry
	// wants are the objects of each deployment ID, and firsts the first
	// deployment ID of each bundle.
	wants  map[string][]*unstructured.Unstructured
	firsts map[string]string
}

var worlds atomic.Int32

func newWorld(t *testing.T) *world {
	t.Helper()
	beside(t)
	return makeWorld(t)
}

// beside lets a test run beside others, where there is an API server.
func beside(t *testing.T) {
	t.Helper()
	labtest.Skip(t)
	t.Parallel()
}

func makeWorld(t *testing.T) *world {
	t.Helper()
	n := worlds.Add(1)
	w := &world{
		t: t, namespace: fmt.Sprintf("cluster-%d", n), state: fmt.Sprintf("agent-%d", n),
		store: kube.New(server.client), stop: func() {},
		spoke: faultproxy.New("spoke", nil), hub: faultproxy.New("hub", nil),
		ctx: context.Background(), wants: map[string][]*unstructured.Unstructured{}, firsts: map[string]string{},
	}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	w.create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: fleet.AgentName, Annotations: map[string]string{
		fleet.ClusterLabel: "spoke", fleet.ClusterNamespaceLabel: w.namespace,
	}}})
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: fleet.CapabilitiesName}})
	t.Cleanup(func() { w.stop() })
	return w
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	if err := server.client.Create(w.ctx, obj); err != nil {
		w.t.Fatal(err)
	}
}

// ns is a namespace that belongs to the test.
func (w *world) ns(name string) string { return w.namespace + "-" + name }

// start runs the agent until stop or the end of the test.
func (w *world) start() *world {
	w.t.Helper()
	ctx, cancel := context.WithCancel(logr.NewContext(w.ctx, testr.NewWithInterface(quiet{w.t}, testr.Options{Verbosity: 1})))
	spoke, hub := w.spoke.Connect(server.config, cancel), w.hub.Connect(server.config, cancel)
	done, ended := make(chan error, 1), make(chan struct{})
	w.ended = ended
	go func() {
		defer close(ended)
		var metrics prometheus.Registerer
		if w.metrics != nil {
			metrics = w.metrics
		}
		done <- agent.Run(ctx, agent.Options{
			Metrics: metrics,
			Spoke:   spoke, Hub: hub,
			HubNamespace: w.namespace, Namespace: w.state, Identity: "test",
			RancherFleet: w.neighbours, Heartbeat: time.Minute, Settle: w.settle, Poll: w.poll, Renderer: render.New(), Clock: clock.RealClock{},
		})
	}()
	var once sync.Once
	w.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				w.t.Logf("agent: %v", err)
			}
		})
	}
	return w
}

// quiet drops what the agent logs after the end of its test.
type quiet struct{ t *testing.T }

func (q quiet) Helper() {}
func (q quiet) Log(args ...any) {
	if q.t.Context().Err() == nil {
		q.t.Log(args...)
	}
}

// deploy writes what the hub would write.
func (w *world) deploy(bundle string, objects []string, change ...func(*fleet.BundleDeployment)) {
	w.t.Helper()
	bd := &fleet.BundleDeployment{}
	key := client.ObjectKey{Namespace: w.namespace, Name: bundle}
	exists := server.client.Get(w.ctx, key, bd) == nil
	bd.Namespace, bd.Name = w.namespace, bundle
	bd.Labels = map[string]string{fleet.BundleLabel: bundle, fleet.BundleNamespaceLabel: w.namespace}
	for _, c := range change {
		c(bd)
	}
	if objects != nil {
		w.content(bd, objects)
	}
	for _, text := range objects {
		w.wants[bd.Spec.DeploymentID] = append(w.wants[bd.Spec.DeploymentID], w.parsed(text))
	}
	if w.firsts[bundle] == "" {
		w.firsts[bundle] = bd.Spec.DeploymentID
	}
	var err error
	if exists {
		err = server.client.Update(w.ctx, bd)
	} else {
		err = server.client.Create(w.ctx, bd)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) content(bd *fleet.BundleDeployment, objects []string) {
	w.t.Helper()
	var rendered []render.Object
	for _, text := range objects {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			w.t.Fatal(err)
		}
		rendered = append(rendered, rendertest.Object(w.t, raw))
	}
	enc, err := content.NewEncoder(content.Key("test")).Objects(rendered)
	if err != nil {
		w.t.Fatal(err)
	}
	bd.Spec.Content = &fleet.ContentRef{Digest: enc.Root.Digest, Name: enc.Root.Name}
	if w.registry == nil {
		err = w.store.Put(w.ctx, enc, w.namespace)
	} else if err = w.store.PutSecrets(w.ctx, enc, w.namespace); err == nil {
		err = w.registry.Put(w.ctx, enc)
		bd.Spec.OCIContents, bd.Spec.Content.Registry = true, registrySecret
	}
	if err != nil {
		w.t.Fatal(err)
	}
	options, err := digest.OfJSON(bd.Spec.Options)
	if err != nil {
		w.t.Fatal(err)
	}
	bd.Spec.DeploymentID = "s-" + enc.Root.Digest[:61] + ":" + options
}

// status returns the status that the hub has.
func (w *world) status(bundle string) *fleet.BundleDeployment {
	w.t.Helper()
	bd := &fleet.BundleDeployment{}
	if err := server.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: bundle}, bd); err != nil {
		w.t.Fatal(err)
	}
	return bd
}

// until waits for the status of a bundle to satisfy check.
func (w *world) until(bundle string, check func(*fleet.BundleDeployment) error) *fleet.BundleDeployment {
	w.t.Helper()
	var bd *fleet.BundleDeployment
	w.eventually(func() error {
		bd = w.status(bundle)
		return check(bd)
	})
	return bd
}

func (w *world) eventually(check func() error) {
	w.t.Helper()
	labtest.Eventually(w.t, "the cluster", check)
}

// ready is satisfied once what is wanted runs.
func ready(bd *fleet.BundleDeployment) error {
	return in(fleet.Ready)(bd)
}

func in(want fleet.BundleState) func(*fleet.BundleDeployment) error {
	return func(bd *fleet.BundleDeployment) error {
		if bd.Status.Display.State != string(want) || bd.Status.ObservedGeneration != bd.Generation {
			raw, _ := json.Marshal(bd.Status)
			return fmt.Errorf("state is %q of generation %d/%d, want %q: %s",
				bd.Status.Display.State, bd.Status.ObservedGeneration, bd.Generation, want, raw)
		}
		return nil
	}
}

// object reads an object of the spoke; kind is "v1/ConfigMap".
func (w *world) object(kind, namespace, name string) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	i := strings.LastIndex(kind, "/")
	obj.SetAPIVersion(kind[:i])
	obj.SetKind(kind[i+1:])
	err := server.client.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
	return obj, err
}

func (w *world) must(kind, namespace, name string) *unstructured.Unstructured {
	w.t.Helper()
	obj, err := w.object(kind, namespace, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return obj
}

// edit changes an object as a person with this program would.
func (w *world) edit(obj *unstructured.Unstructured, program, patch string) {
	w.t.Helper()
	err := server.client.Patch(w.ctx, obj, client.RawPatch("application/merge-patch+json", []byte(patch)), client.FieldOwner(program))
	if err != nil {
		w.t.Fatal(err)
	}
}

// writes matches what changes something; heartbeats apart.
func writes(r apireq.Request) bool { return r.Writes() && r.Resource != "leases" }

func all(apireq.Request) bool { return true }

// apply makes an object as a person with kubectl would.
func (w *world) apply(text string) {
	w.t.Helper()
	if err := server.client.Create(w.ctx, w.parsed(text), client.FieldOwner("kubectl-client-side-apply")); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) parsed(text string) *unstructured.Unstructured {
	w.t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), obj); err != nil {
		w.t.Fatal(err)
	}
	return obj
}
