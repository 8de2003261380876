// Package agent puts the agent of one cluster together: it takes deployments
// from the hub, applies them, watches over them, and reports.
package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	typedauthenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/flotilla-sh/flotilla/internal/agent/accounts"
	"github.com/flotilla-sh/flotilla/internal/agent/beside"
	"github.com/flotilla-sh/flotilla/internal/agent/drift"
	"github.com/flotilla-sh/flotilla/internal/agent/events"
	"github.com/flotilla-sh/flotilla/internal/agent/hub"
	"github.com/flotilla-sh/flotilla/internal/agent/lease"
	"github.com/flotilla-sh/flotilla/internal/agent/render"
	"github.com/flotilla-sh/flotilla/internal/agent/state"
	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/backoff"
	"github.com/flotilla-sh/flotilla/internal/observe"
	engine "github.com/flotilla-sh/flotilla/internal/render"
)

// startRetry is when something that the start needs is tried again.
var startRetry = backoff.Backoff{Min: time.Second, Max: time.Minute, Jitter: 0.5}

// Options are what an agent is started with.
type Options struct {
	// Spoke is the agent's own cluster, Hub the API server of the hub.
	Spoke, Hub *rest.Config
	// HubNamespace is the cluster's namespace on the hub.
	HubNamespace string
	// Namespace is where the agent keeps its state on its own cluster.
	Namespace string
	// Identity names this agent among those that may run for its cluster, and
	// Process this life of it.
	Identity, Process string
	// Former tells whether a holder of the cluster's Lease is an earlier life
	// of this agent that has certainly ended; nil knows of none.
	Former func(holder string) bool
	// Poll is the time between two looks at the hub; 0 watches instead.
	Poll time.Duration
	// Settle is how long what leaves a bundle stays, in case that another one
	// takes it over.
	Settle time.Duration
	// Heartbeat is the time between two heartbeats.
	Heartbeat time.Duration
	// RancherFleet are the namespaces in which an agent of Rancher Fleet, where it
	// is active, makes this one do nothing.
	RancherFleet []string
	// Metrics takes the agent's Prometheus metrics; nil where nobody wants them.
	Metrics prometheus.Registerer
	// Renderer renders what the hub leaves to the cluster.
	Renderer engine.Renderer
	Clock    clock.Clock
}

// Run works until ctx ends, while no other agent acts for the cluster. It starts
// without the hub where it must; its own cluster it waits for.
func Run(ctx context.Context, o Options) error {
	holder, err := holderOf(o)
	if err != nil {
		return err
	}
	o.Spoke = holder.Fence(o.Spoke)
	return holder.Hold(ctx, func(ctx context.Context) error { return act(ctx, o) })
}

// holderOf returns what decides which of several agents acts.
func holderOf(o Options) (*lease.Holder, error) {
	config := protobuf(unlimited(o.Spoke))
	leases, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	core, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	identity := o.Identity
	if o.Process != "" {
		identity += "/" + o.Process
	}
	return lease.New(lease.Options{
		Leases: leases.Leases(o.Namespace), Identity: identity, Former: o.Former, Clock: o.Clock,
		Prepare: func(ctx context.Context) error { return ensureNamespace(ctx, core.Namespaces(), o.Namespace) },
	}), nil
}

// act is the work of the agent that has the Lease.
func act(ctx context.Context, o Options) error {
	a, err := build(o)
	if err != nil {
		return err
	}
	records, err := a.load(ctx)
	if err != nil {
		return err
	}
	if err := a.notBeside(ctx); err != nil {
		return err
	}
	a.core.Deployments.Restore(ctx, records)
	logr.FromContextOrDiscard(ctx).Info("started", "deployments", len(records), "hub", o.Hub.Host, "namespace", o.HubNamespace)
	if o.Metrics != nil {
		if err := o.Metrics.Register(a.core.Deployments); err != nil {
			return fmt.Errorf("register the metrics: %w", err)
		}
		defer o.Metrics.Unregister(a.core.Deployments)
	}
	looks := func(ctx context.Context) { a.drift.Run(ctx, a.core.Deployments) }
	a.core.Run(ctx, a.events.Run, looks, a.watcher.Run, a.beside.Run)
	return nil
}

// notBeside finds out whether the agent of Rancher Fleet is active before
// anything is done.
func (a *agent) notBeside(ctx context.Context) error {
	return a.until(ctx, "could not look for the agent of Rancher Fleet", a.beside.Look)
}

// agent is what Core knows nothing of: the agent's own cluster.
type agent struct {
	options    Options
	core       *Core
	events     *events.Recorder
	namespaces typedcorev1.NamespaceInterface
	store      *state.Store
	drift      *drift.Controller
	watcher    *observe.Watcher
	beside     *beside.Watcher
}

func build(o Options) (*agent, error) {
	hubClient, err := hub.NewClient(unlimited(o.Hub), o.HubNamespace)
	if err != nil {
		return nil, err
	}
	spoke := unlimited(o.Spoke)
	core, err := typedcorev1.NewForConfig(protobuf(spoke))
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	found, err := discovery.NewDiscoveryClientForConfig(spoke)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	who, err := typedauthenticationv1.NewForConfig(protobuf(spoke))
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	kinds := apply.NewKinds(found, o.Clock)
	client, err := clientFor(spoke, kinds)
	if err != nil {
		return nil, err
	}
	told, err := typedeventsv1.NewForConfig(protobuf(spoke))
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	a := &agent{options: o, events: events.New(told, o.Namespace), namespaces: core.Namespaces(), store: state.NewStore(core.Secrets(o.Namespace))}
	as := &accounts.Accounts{
		Namespace: o.Namespace, Found: core.ServiceAccounts(o.Namespace), Self: who.SelfSubjectReviews(), Own: apply.NewEngine(client), Clock: o.Clock,
		Spoke: spoke, Connect: func(as *rest.Config) (*apply.Client, error) { return clientFor(as, kinds) },
	}
	a.assemble(Parts{
		Hub: hubClient, Store: a.store, Engine: as.Own, Accounts: as, Teller: a.events,
		Renderer: &render.Renderer{Engine: o.Renderer, Version: found}, Kinds: kinds, Version: found,
		Identity: o.Identity, Namespace: o.Namespace, Heartbeat: o.Heartbeat, Poll: o.Poll, Settle: o.Settle, Clock: o.Clock,
	}, client)
	return a, nil
}

func clientFor(spoke *rest.Config, kinds *apply.Kinds) (*apply.Client, error) {
	objects, err := dynamic.NewForConfig(spoke)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	meta, err := metadata.NewForConfig(spoke)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return &apply.Client{Kinds: kinds, Objects: objects, Metadata: meta}, nil
}

// assemble adds those who watch the cluster to the parts, and connects all.
func (a *agent) assemble(p Parts, client *apply.Client) {
	a.drift = drift.New(observe.NewChecker(client))
	tracker := observe.NewTracker(p.Clock, a.drift.Notify)
	a.drift.Use(tracker)
	a.watcher = observe.NewWatcher(client, tracker)
	watching := &watching{tracker: tracker, watcher: a.watcher, drift: a.drift}
	p.Observer = watching
	a.core = p.Assemble()
	watching.deployments = a.core.Deployments
	a.beside = &beside.Watcher{Objects: client.Objects, Namespaces: a.options.RancherFleet, Tell: a.core.Deployments.Beside, Clock: p.Clock}
}

// unlimited takes the client's own rate limit off: the API server's fairness
// is the limit.
func unlimited(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.QPS, c.Burst, c.RateLimiter = -1, 0, nil
	c.UserAgent = "flotilla-agent"
	return c
}

func protobuf(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.ContentType, c.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	return c
}

// load makes the agent's namespace and reads what it had stored there, as soon
// as its cluster answers.
func (a *agent) load(ctx context.Context) ([]*state.Record, error) {
	var records []*state.Record
	err := a.until(ctx, "could not read the stored state", func(ctx context.Context) (err error) {
		records, err = a.loadOnce(ctx)
		return err
	})
	return records, err
}

// until tries something that the start needs until it succeeds.
func (a *agent) until(ctx context.Context, failure string, try func(context.Context) error) error {
	for failures := 1; ; failures++ {
		err := try(ctx)
		if err == nil {
			return nil
		}
		logr.FromContextOrDiscard(ctx).Info(failure+"; trying again", "error", err.Error())
		select {
		case <-ctx.Done():
			return fmt.Errorf("stopped: %s: %w", failure, err)
		case <-a.options.Clock.After(startRetry.After(failures, rand.Float64)):
		}
	}
}

func (a *agent) loadOnce(ctx context.Context) ([]*state.Record, error) {
	if err := ensureNamespace(ctx, a.namespaces, a.options.Namespace); err != nil {
		return nil, err
	}
	return a.store.Load(ctx)
}

func ensureNamespace(ctx context.Context, namespaces typedcorev1.NamespaceInterface, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := namespaces.Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return nil
}
