package soak_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/agent"
	"github.com/flotilla-sh/flotilla/internal/apireq"
	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/faultproxy"
	"github.com/flotilla-sh/flotilla/internal/hub"
	"github.com/flotilla-sh/flotilla/internal/memapi"
	clusternames "github.com/flotilla-sh/flotilla/internal/names"
	"github.com/flotilla-sh/flotilla/internal/render"
)

// servers are the API servers of a world, real ones or in memory.
type servers struct {
	hub    *rest.Config
	spokes []*rest.Config
}

// pace is how time passes: virtual time costs nothing.
type pace struct {
	// step is the longest pause between two steps; some are far shorter.
	step time.Duration
	// fault is how long a watch is held or silent at most.
	fault time.Duration
	// converge is how long reaching what is wanted may take, look how often it
	// is looked at, and quiet how long nothing may be written afterwards.
	converge, look, quiet time.Duration
	// poll is how often repositories are looked at.
	poll    time.Duration
	restart time.Duration
	// work is how long controllers of clusters take for an object at most.
	work time.Duration
	// settle is how long agents wait for another bundle to take an object over.
	settle time.Duration
}

// world is a fleet and the people who work with it.
type world struct {
	t     *testing.T
	seed  uint64
	rand  *rand.Rand
	pace  pace
	model *model
	watch *monitor // nil where nobody watches every write
	// memory are the API servers in memory, the hub's first.
	memory []*memapi.Server

	hub    *component
	agents []*component
	// direct reaches the API servers past all faults.
	direct struct {
		hub    client.Client
		spokes []client.WithWatch
		kinds  []*apply.Kinds
	}

	// departed is true once a cluster's record was deleted.
	departed bool
	// edited are bundles of which objects were changed by hand, and which put
	// nothing right themselves; cut are the lines that are cut; made counts
	// names.
	edited map[string]bool
	cut    map[int]bool
	made   int
	// git has the repositories, in the worlds that have some; luck decides on
	// what happens with them.
	git    *gitServer
	gitops bool
	repos  []*repo
	luck   *rand.Rand

	// halt ends what plays the controllers of clusters.
	halt context.CancelFunc

	begin time.Time
	mu    sync.Mutex
	lines []string
	// breaches counts what programs did that they may never do.
	breaches int
}

func newWorld(t *testing.T, seed uint64, id string, s servers, p pace) *world {
	w := &world{
		t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), pace: p, begin: time.Now(),
		model:  &model{names: namesOf(id), bundles: map[string]*bundle{}},
		edited: map[string]bool{}, cut: map[int]bool{}, gitops: seed%5 == 2, luck: rand.New(rand.NewPCG(seed, 2)),
	}
	w.git = newGitServer(seed, p.fault/4, w.trace)
	w.direct.hub = w.client(s.hub)
	for i, config := range s.spokes {
		w.direct.spokes = append(w.direct.spokes, w.client(config))
		w.direct.kinds = append(w.direct.kinds, apply.NewKinds(discovery.NewDiscoveryClientForConfigOrDie(config), clock.RealClock{}))
		w.model.clusters = append(w.model.clusters, &cluster{name: fmt.Sprintf("c%d", i+1), ring: rings[w.rand.IntN(2)]})
		w.agents = append(w.agents, w.agent(i, s))
	}
	w.hub = w.hubComponent(s.hub)
	return w
}

// scheme is that of all clients of people.
var scheme = sync.OnceValues(func() (*runtime.Scheme, error) {
	scheme, err := hub.Scheme()
	if err != nil {
		return nil, err
	}
	return scheme, apiextensionsv1.AddToScheme(scheme)
})

func (w *world) client(config *rest.Config) client.WithWatch {
	w.t.Helper()
	scheme, err := scheme()
	w.must(err)
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	w.must(err)
	return c
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("seed %d: %v\n%s", w.seed, err, w.story())
	}
}

// trace writes a line of the story.
func (w *world) trace(format string, args ...any) {
	line := fmt.Sprintf("%12s  ", time.Since(w.begin).Round(time.Millisecond)) + fmt.Sprintf(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line)
}

// story is what happened.
func (w *world) story() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.lines, "\n")
}

// last is the end of the story.
func (w *world) last(lines int) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.lines[max(0, len(w.lines)-lines):], "\n")
}

func (w *world) proxy(name string) *faultproxy.Proxy { return faultproxy.New(name, w.trace) }

func (w *world) hubComponent(config *rest.Config) *component {
	proxy, dir := w.proxy("hub"), w.t.TempDir()
	return &component{
		name: "hub", proxies: []*faultproxy.Proxy{proxy}, pause: w.pace.restart, trace: w.trace,
		run: func(ctx context.Context, kill func()) error {
			return hub.Run(ctx, hub.Options{
				Config: proxy.Connect(config, kill), Namespace: w.model.names.hub, CacheDir: dir, Git: w.git,
				Identity: "hub", Renderer: render.New(), MetricsAddress: "0",
			})
		},
	}
}

func (w *world) agent(i int, s servers) *component {
	name, poll := fmt.Sprintf("c%d", i+1), time.Duration(0)
	if w.seed%6 == 1 {
		poll = w.pace.poll
	}
	toHub, toSpoke := w.proxy(name+" to hub"), w.proxy(name+" to itself")
	return &component{
		name: name, proxies: []*faultproxy.Proxy{toHub, toSpoke}, pause: w.pace.restart, trace: w.trace,
		run: func(ctx context.Context, kill func()) error {
			return agent.Run(logr.NewContext(ctx, logger(w, name)), agent.Options{
				Spoke: toSpoke.Connect(s.spokes[i], kill), Hub: toHub.Connect(s.hub, kill),
				HubNamespace: clusternames.ClusterNamespace(w.model.names.fleet, name), Namespace: w.model.names.agent,
				Identity: name, Heartbeat: time.Minute, Poll: poll, Settle: w.pace.settle, Renderer: render.New(), Clock: clock.RealClock{},
			})
		},
	}
}

func (w *world) components() []*component { return append([]*component{w.hub}, w.agents...) }

func (w *world) proxies() []*faultproxy.Proxy {
	var out []*faultproxy.Proxy
	for _, c := range w.components() {
		out = append(out, c.proxies...)
	}
	return out
}

// start makes the namespaces and the clusters, and starts everything.
func (w *world) start() {
	ctx := context.Background()
	for _, name := range []string{w.model.names.fleet, w.model.names.hub} {
		w.must(w.direct.hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	for _, c := range w.model.clusters {
		w.must(w.direct.hub.Create(ctx, w.record(c)))
	}
	ctx, w.halt = context.WithCancel(ctx)
	for i := range w.agents {
		w.controllers(ctx, i)
	}
	for _, c := range w.components() {
		c.start(ctx)
	}
}

// stop ends everything.
func (w *world) stop() {
	for _, c := range w.components() {
		c.halt()
	}
	w.halt()
}

// faults lets the seed's faults happen, or ends them.
func (w *world) faults(on bool) {
	var decide faultproxy.Decider
	if on {
		plan := faultproxy.NewPlan(w.seed, w.pace.fault)
		w.trace("faults: %s", plan)
		decide = func(q faultproxy.Request) faultproxy.Fault { return unlocked(q, plan.Decide(q)) }
	}
	w.git.faults(on)
	for _, p := range w.proxies() {
		p.Use(decide)
		if !on {
			p.Cut(false)
		}
	}
}

// unlocked keeps faults away from which client-go recovers by waiting inside of
// the call, where callers hold locks during the call: virtual time does not
// pass while somebody waits for a lock. Reflectors and status writers hold none.
func unlocked(q faultproxy.Request, f faultproxy.Fault) faultproxy.Fault {
	if q.Verb == apireq.Watch || q.Cached() || q.Subresource == "status" {
		return f
	}
	switch {
	case f.Kind == faultproxy.TooMany:
		f.For = 0
	case f.Kind == faultproxy.Lose && !q.Writes():
		f.Kind = faultproxy.Internal
	}
	return f
}
