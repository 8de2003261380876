package agent

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/flotilla-sh/flotilla/internal/agent/deploy"
	"github.com/flotilla-sh/flotilla/internal/agent/heartbeat"
	"github.com/flotilla-sh/flotilla/internal/agent/hub"
	"github.com/flotilla-sh/flotilla/internal/agent/render"
	"github.com/flotilla-sh/flotilla/internal/agent/report"
	"github.com/flotilla-sh/flotilla/internal/agent/state"
	"github.com/flotilla-sh/flotilla/internal/apply"
)

// Hub is an agent's way to the hub.
type Hub interface {
	deploy.Hub
	heartbeat.Hub
	report.Hub
	// Watch and Poll take in what the hub says until ctx ends.
	Watch(ctx context.Context, in hub.Inbox)
	Poll(ctx context.Context, in hub.Inbox, every time.Duration, clock clock.Clock)
}

// Parts are what an agent is assembled from: its way to the hub and what it
// does with its cluster. Run makes the real ones; who simulates a fleet has
// others, and the same agent.
type Parts struct {
	Hub    Hub
	Store  *state.Store
	Engine *apply.Engine
	// Accounts may be nil, and Teller.
	Accounts deploy.Accounts
	Teller   deploy.Teller
	Observer deploy.Observer
	Renderer *render.Renderer
	Kinds    report.Kinds
	Version  report.Version
	// The rest is as in Options.
	Identity, Namespace     string
	Heartbeat, Poll, Settle time.Duration
	Clock                   clock.Clock
}

// Core is what makes an agent one, whatever its cluster is.
type Core struct {
	Deployments *deploy.Controller

	parts  Parts
	beat   *heartbeat.Beat
	report *report.Reporter
}

// Assemble connects the parts.
func (p Parts) Assemble() *Core {
	c := &Core{parts: p}
	c.Deployments = deploy.New(deploy.Options{
		Hub: p.Hub, Store: p.Store, Engine: p.Engine, Accounts: p.Accounts, Observer: p.Observer, Clock: p.Clock,
		KindsChanged: func() { c.report.Wake() }, Namespace: p.Namespace, Settle: p.Settle,
		Renderer: p.Renderer, Teller: p.Teller,
	})
	c.beat = heartbeat.New(heartbeat.Options{
		Hub: p.Hub, Identity: p.Identity, Interval: p.Heartbeat, Clock: p.Clock, Anew: func() { c.report.Anew() },
	})
	c.report = report.New(report.Options{
		Hub: p.Hub, Tell: c.beat.Tell, Kinds: p.Kinds, Version: p.Version, Clock: p.Clock, Namespace: p.Namespace, Unknown: c.Deployments.Unknown,
	})
	return c
}

// Run works until ctx ends, and runs beside it what else belongs to an agent.
func (c *Core) Run(ctx context.Context, more ...func(context.Context)) {
	var group sync.WaitGroup
	for _, run := range append(more, c.beat.Run, c.report.Run, c.Deployments.Run, c.listen) {
		group.Go(func() { run(ctx) })
	}
	group.Wait()
}

// listen takes in what the hub says.
func (c *Core) listen(ctx context.Context) {
	if c.parts.Poll > 0 {
		c.parts.Hub.Poll(ctx, c.Deployments, c.parts.Poll, c.parts.Clock)
		return
	}
	c.parts.Hub.Watch(ctx, c.Deployments)
}
