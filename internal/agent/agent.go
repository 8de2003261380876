// Package agent puts the agent of one cluster together: it takes deployments
// from the hub, applies them, watches over them, and reports.
package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/flotilla-sh/flotilla/internal/agent/deploy"
	"github.com/flotilla-sh/flotilla/internal/agent/drift"
	"github.com/flotilla-sh/flotilla/internal/agent/events"
	"github.com/flotilla-sh/flotilla/internal/agent/heartbeat"
	"github.com/flotilla-sh/flotilla/internal/agent/hub"
	"github.com/flotilla-sh/flotilla/internal/agent/render"
	"github.com/flotilla-sh/flotilla/internal/agent/report"
	"github.com/flotilla-sh/flotilla/internal/agent/state"
	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/observe"
	engine "github.com/flotilla-sh/flotilla/internal/render"
)

const (
	startRetry   = time.Second
	startRetryTo = time.Minute
)

// Options are what an agent is started with.
type Options struct {
	// Spoke is the agent's own cluster, Hub the API server of the hub.
	Spoke, Hub *rest.Config
	// HubNamespace is the cluster's namespace on the hub.
	HubNamespace string
	// Namespace is where the agent keeps its state on its own cluster.
	Namespace string
	// Identity names this agent among those that may run for its cluster.
	Identity string
	// Settle is how long what leaves a bundle stays, in case that another one
	// takes it over.
	Settle time.Duration
	// Heartbeat is the time between two heartbeats.
	Heartbeat time.Duration
	// Metrics takes the agent's Prometheus metrics; nil where nobody wants them.
	Metrics prometheus.Registerer
	// Renderer renders what the hub leaves to the cluster.
	Renderer engine.Renderer
	Clock    clock.Clock
}

// Run works until ctx ends. It starts without the hub where it must; its own
// cluster it waits for.
func Run(ctx context.Context, o Options) error {
	a, err := build(o)
	if err != nil {
		return err
	}
	records, err := a.load(ctx)
	if err != nil {
		return err
	}
	a.deploy.Restore(ctx, records)
	logr.FromContextOrDiscard(ctx).Info("started", "deployments", len(records), "hub", o.Hub.Host, "namespace", o.HubNamespace)
	var group sync.WaitGroup
	if o.Metrics != nil {
		if err := o.Metrics.Register(a.deploy); err != nil {
			return fmt.Errorf("register the metrics: %w", err)
		}
		defer o.Metrics.Unregister(a.deploy)
	}
	group.Go(func() { a.events.Run(ctx) })
	group.Go(func() { a.beat.Run(ctx) })
	group.Go(func() { a.report.Run(ctx) })
	group.Go(func() { a.drift.Run(ctx, a.deploy) })
	group.Go(func() { a.deploy.Run(ctx) })
	group.Go(func() { a.hub.Watch(ctx, a.deploy) })
	group.Go(func() { a.watcher.Run(ctx) })
	group.Wait()
	return nil
}

// agent is the parts of an agent.
type agent struct {
	options    Options
	events     *events.Recorder
	hub        *hub.Client
	namespaces typedcorev1.NamespaceInterface
	store      *state.Store
	deploy     *deploy.Controller
	drift      *drift.Controller
	watcher    *observe.Watcher
	report     *report.Reporter
	beat       heartbeat.Beat
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
	client, err := clientFor(spoke, found, o.Clock)
	if err != nil {
		return nil, err
	}
	told, err := typedeventsv1.NewForConfig(protobuf(spoke))
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	a := &agent{options: o, events: events.New(told, o.Namespace), hub: hubClient, namespaces: core.Namespaces(), store: state.NewStore(core.Secrets(o.Namespace))}
	a.assemble(client, found)
	return a, nil
}

func clientFor(spoke *rest.Config, found *discovery.DiscoveryClient, c clock.Clock) (*apply.Client, error) {
	objects, err := dynamic.NewForConfig(spoke)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	meta, err := metadata.NewForConfig(spoke)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return &apply.Client{Kinds: apply.NewKinds(found, c), Objects: objects, Metadata: meta}, nil
}

// assemble connects the parts.
func (a *agent) assemble(client *apply.Client, found *discovery.DiscoveryClient) {
	o := a.options
	a.drift = drift.New(observe.NewChecker(client))
	tracker := observe.NewTracker(o.Clock, a.drift.Notify)
	a.drift.Use(tracker)
	a.watcher = observe.NewWatcher(client, tracker)
	watching := &watching{tracker: tracker, watcher: a.watcher, drift: a.drift}
	a.deploy = deploy.New(deploy.Options{
		Hub: a.hub, Store: a.store, Engine: apply.NewEngine(client), Observer: watching, Clock: o.Clock,
		KindsChanged: func() { a.report.Wake() }, Namespace: o.Namespace, Settle: o.Settle,
		Renderer: &render.Renderer{Engine: o.Renderer, Version: found}, Teller: a.events,
	})
	watching.deployments = a.deploy
	a.report = report.New(report.Options{
		Hub: a.hub, Kinds: client.Kinds, Version: found, Clock: o.Clock, Namespace: o.Namespace, Unknown: a.deploy.Unknown,
	})
	a.beat = heartbeat.Beat{Hub: a.hub, Identity: o.Identity, Interval: o.Heartbeat, Clock: o.Clock}
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
	pause := startRetry
	for {
		records, err := a.loadOnce(ctx)
		if err == nil {
			return records, nil
		}
		logr.FromContextOrDiscard(ctx).Info("could not read the stored state; trying again", "error", err.Error())
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("stopped before the stored state could be read: %w", err)
		case <-a.options.Clock.After(pause):
			pause = min(2*pause, startRetryTo)
		}
	}
}

func (a *agent) loadOnce(ctx context.Context) ([]*state.Record, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.options.Namespace}}
	_, err := a.namespaces.Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create namespace %s: %w", a.options.Namespace, err)
	}
	return a.store.Load(ctx)
}
