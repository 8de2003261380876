// Package sim stands in for the agents of a large fleet. A simulated agent is
// the agent's own code from the hub inwards: it watches its namespace, decides,
// fetches content, reports and beats as the agent does. Its cluster is missing:
// every object that is written there is taken and is ready at once.
package sim

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/flotilla-sh/flotilla/internal/agent"
	"github.com/flotilla-sh/flotilla/internal/agent/hub"
	"github.com/flotilla-sh/flotilla/internal/agent/render"
	"github.com/flotilla-sh/flotilla/internal/agent/state"
	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/content"
)

// userAgent is what the agent calls itself.
const userAgent = "flotilla-agent"

// Member is one cluster of the fleet.
type Member struct {
	// Namespace is the cluster's namespace on the hub, Token that of its agent.
	Namespace, Token string
}

// Options are what a fleet is made from.
type Options struct {
	// Hub reaches the hub's API server; its identity is not used.
	Hub *rest.Config
	// Heartbeat is the time between two heartbeats of an agent.
	Heartbeat time.Duration
	// Kinds are what every cluster serves, Version its version.
	Kinds   *Kinds
	Version *version.Info
}

// Fleet is a number of simulated agents. They share connections to the hub and
// the memory for content.
type Fleet struct {
	options Options
	fetched *fetched
	group   sync.WaitGroup
	cancel  context.CancelFunc
}

// NewFleet returns a fleet without agents.
func NewFleet(o Options) *Fleet {
	return &Fleet{options: o, fetched: &fetched{}, cancel: func() {}}
}

// Fetched are the bytes of content that all agents have read from the hub.
func (f *Fleet) Fetched() int64 { return f.fetched.bytes.Load() }

// Start starts the agents within a time, evenly, and returns when all run.
func (f *Fleet) Start(ctx context.Context, members []Member, within time.Duration) error {
	running, cancel := context.WithCancel(ctx)
	f.cancel = cancel
	began := time.Now()
	for i, m := range members {
		due := time.Duration(i) * within / time.Duration(len(members))
		if ahead := due - time.Since(began); ahead > time.Millisecond {
			time.Sleep(ahead)
		}
		if err := f.start(running, m); err != nil {
			f.Stop()
			return err
		}
	}
	return ctx.Err()
}

// Stop ends all agents and waits for them.
func (f *Fleet) Stop() {
	f.cancel()
	f.group.Wait()
}

// start runs one agent: the agent itself, with stand-ins for its cluster.
func (f *Fleet) start(ctx context.Context, m Member) error {
	client, err := f.Client(m)
	if err != nil {
		return err
	}
	version := known{f.options.Version}
	core := agent.Parts{
		Hub: shared{client, f.fetched}, Store: state.NewStore(secrets{}), Observer: &observer{},
		Engine:   apply.NewEngine(&apply.Client{Kinds: f.options.Kinds.Lookup, Objects: objects{}, Metadata: metas{kinds: f.options.Kinds}}),
		Renderer: &render.Renderer{Engine: renderer{}, Version: version}, Kinds: f.options.Kinds, Version: version,
		Identity: "simulated", Namespace: "cattle-fleet-system", Heartbeat: f.options.Heartbeat, Clock: clock.RealClock{},
	}.Assemble()
	f.group.Go(func() { core.Run(ctx) })
	return nil
}

// Client returns the way of a member's agent to the hub.
func (f *Fleet) Client(m Member) (*hub.Client, error) {
	config := rest.AnonymousClientConfig(f.options.Hub)
	config.QPS, config.UserAgent, config.BearerToken = -1, userAgent, m.Token
	config.Timeout = 0
	client, err := hub.NewClient(config, m.Namespace)
	if err != nil {
		return nil, fmt.Errorf("simulated agent of %s: %w", m.Namespace, err)
	}
	return client, nil
}

// Getter returns what a member's agent reads content with.
func (f *Fleet) Getter(m Member) (content.Getter, error) {
	client, err := f.Client(m)
	if err != nil {
		return nil, err
	}
	return shared{client, f.fetched}.Content(), nil
}

// shared fetches like every agent, and keeps one copy of what all have fetched.
type shared struct {
	*hub.Client
	fetched *fetched
}

// fetched is the content that some agent has fetched.
type fetched struct {
	blobs sync.Map
	bytes atomic.Int64
}

// Content returns the getter of an agent.
func (s shared) Content() content.Getter { return interned{s.Client.Content(), s.fetched} }

type interned struct {
	content.Getter
	fetched *fetched
}

// Get fetches a payload.
func (i interned) Get(ctx context.Context, ref content.Ref) (content.Parcel, error) {
	parcel, err := i.Getter.Get(ctx, ref)
	if err != nil {
		return parcel, err
	}
	i.fetched.bytes.Add(int64(len(parcel.Data) + len(parcel.Pack)))
	one, _ := i.fetched.blobs.LoadOrStore(ref.Name, parcel)
	return one.(content.Parcel), nil
}

// Spread is a time within which n agents start without crowding a machine that
// measures something else.
func Spread(n int) time.Duration { return time.Duration(n) * 5 * time.Millisecond }
