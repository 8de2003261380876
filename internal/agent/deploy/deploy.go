// Package deploy brings each deployment of a cluster to what the hub wants, or,
// with the hub away, to what it wanted last. It looks at the state of a
// deployment, names the situation, takes the one action that it calls for, and
// looks again.
package deploy

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/flotilla-sh/flotilla/internal/agent/render"
	"github.com/flotilla-sh/flotilla/internal/agent/state"
	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/observe"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// workers is how many deployments are worked on at a time.
	workers = 4
	// maxSteps bounds the actions of one visit to a deployment.
	maxSteps = 8
	// lookTime is how long the first report waits for the state of objects.
	lookTime = 10 * time.Second
)

// Hub is where a deployment is read anew and its status goes.
type Hub interface {
	Get(ctx context.Context, name string) (*fleet.BundleDeployment, error)
	// PatchStatus returns what it has written to: there may be another
	// deployment of that name by then.
	PatchStatus(ctx context.Context, name string, patch []byte) (metav1.ObjectMeta, error)
	// Identity tells the hub from others; empty where it has not said.
	Identity(ctx context.Context) (string, error)
	Content() content.Getter
	Registry(ctx context.Context, name string) (map[string][]byte, error)
}

// Observer watches what was applied.
type Observer interface {
	// Begin says that a deployment is about to be applied, Applied what it has
	// now and what of that was written, Gone that it is no more.
	Begin(owner apply.Owner)
	Applied(ctx context.Context, owner apply.Owner, inventory apply.Inventory, written map[apply.Ref]bool)
	Gone(ctx context.Context, label string)
	// Dressed says on which namespace a deployment has set something; "" is
	// none.
	Dressed(owner apply.Owner, namespace string)
	// Await asks to be told of any change of objects that are not tracked.
	Await(ctx context.Context, owner apply.Owner, refs []apply.Ref)
	// Read reads tracked objects, whatever is known of them. What may not be
	// read stays as it is known.
	Read(ctx context.Context, label string, refs []apply.Ref) error
	// Live and Findings are what is known of its objects.
	Live(label string, ref apply.Ref) apply.Live
	Findings(label string) map[apply.Ref]observe.Finding
}

// Accounts makes engines that act as service accounts of the cluster.
type Accounts interface {
	As(ctx context.Context, account string) (*apply.Engine, error)
}

// as returns the engine by which everything is done for a deployment.
func (c *Controller) as(ctx context.Context, o fleet.BundleDeploymentOptions) (*apply.Engine, error) {
	if c.accounts == nil {
		return c.engine, nil
	}
	return c.accounts.As(ctx, o.ServiceAccount)
}

// Controller works on all deployments of a cluster.
type Controller struct {
	hub      Hub
	store    *state.Store
	engine   *apply.Engine
	accounts Accounts
	renderer *render.Renderer
	observer Observer
	teller   Teller
	metrics  *metrics
	clock    clock.Clock
	queue    workqueue.TypedDelayingInterface[string]
	// changed is called when the kinds of the cluster may have changed.
	changed func()
	// namespace is the agent's own.
	namespace string
	settle    time.Duration

	registries registries
	sources    sourceParts

	mu     sync.Mutex
	listed bool
	beside string
	jobs   map[string]*job
	labels map[string]string
	// given counts the times that objects were given up for other deployments.
	given int
}

// Options are the parts that a Controller works with.
type Options struct {
	Hub    Hub
	Store  *state.Store
	Engine *apply.Engine
	// Accounts makes engines that act as the accounts of bundles; nil knows
	// none, and all is done as the agent itself.
	Accounts Accounts
	// Renderer renders what the hub leaves to the cluster.
	Renderer *render.Renderer
	Observer Observer
	Clock    clock.Clock
	// Teller tells the people of this cluster what happens; nil tells nobody.
	Teller Teller
	// KindsChanged is called after custom resource definitions were applied.
	KindsChanged func()
	// Namespace is the agent's own, which it never deletes.
	Namespace string
	// Settle is how long what leaves a bundle stays, so that another bundle
	// can ask for it: what moves arrives in two deployments, in any order.
	Settle time.Duration
}

// New returns a controller that knows no deployment yet.
func New(o Options) *Controller {
	return &Controller{
		hub: o.Hub, store: o.Store, engine: o.Engine, accounts: o.Accounts, renderer: o.Renderer, observer: o.Observer, clock: o.Clock, changed: o.KindsChanged,
		namespace: o.Namespace, settle: o.Settle, teller: o.Teller, metrics: newMetrics(),
		sources: newSourceParts(),
		queue:   workqueue.NewTypedDelayingQueue[string](),
		jobs:    map[string]*job{}, labels: map[string]string{},
	}
}

// Restore takes in what the agent had stored, and goes on with it at once.
func (c *Controller) Restore(ctx context.Context, records []*state.Record) {
	for _, r := range records {
		owner := r.Owner()
		c.update(r.Name, func(j *job) {
			j.record, j.trackedSince, j.arrived = r, c.clock.Now(), c.clock.Now()
			j.told.applied = r.Applied // that was told before
			c.labels[owner.Label] = r.Name
		})
		c.observer.Dressed(owner, c.worn(r).Namespace)
		c.observer.Applied(ctx, owner, r.Inventory, nil)
		c.queue.Add(r.Name)
	}
}

// Run works on deployments until ctx ends, and then finishes what it is at.
func (c *Controller) Run(ctx context.Context) {
	go func() {
		<-ctx.Done()
		c.queue.ShutDown()
	}()
	var group sync.WaitGroup
	for range workers {
		group.Go(func() { c.work(ctx) })
	}
	group.Wait()
}

func (c *Controller) work(ctx context.Context) {
	for {
		name, stop := c.queue.Get()
		if stop {
			return
		}
		if after := c.visit(ctx, name); after > 0 {
			c.queue.AddAfter(name, after)
		}
		c.queue.Done(name)
	}
}

// Received takes in a deployment from the hub.
func (c *Controller) Received(bd *fleet.BundleDeployment) {
	news := false
	c.update(bd.Name, func(j *job) {
		if j.desired == nil || j.desired.UID != bd.UID || j.desired.Generation != bd.Generation {
			j.arrived = c.clock.Now()
		}
		news = j.receive(bd)
	})
	if news {
		c.queue.Add(bd.Name)
	}
}

// Vanished takes in that the hub has a deployment no more.
func (c *Controller) Vanished(name string) {
	c.update(name, func(j *job) { j.desired, j.reported, j.statusVersion, j.removal = nil, nil, "", nil })
	c.queue.Add(name)
}

// Anew forgets which status the hub has, and of which version: it has lost what
// it knew, and tells all of it again.
func (c *Controller) Anew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range c.jobs {
		j.reported, j.statusVersion = nil, ""
	}
}

// Listed takes in which deployments the hub has.
func (c *Controller) Listed(names map[string]bool) {
	c.mu.Lock()
	c.listed = true
	var gone []string
	for name := range c.jobs {
		if !names[name] {
			gone = append(gone, name)
		}
	}
	c.mu.Unlock()
	for _, name := range gone {
		c.Vanished(name)
	}
}

// Found takes in that something new is known of a deployment's objects.
func (c *Controller) Found(label string) {
	c.mu.Lock()
	name, ok := c.labels[label]
	c.mu.Unlock()
	if ok {
		c.update(name, func(j *job) {
			j.found++
			j.awaits.until = time.Time{}
			j.trouble = j.trouble.after(true)
		})
		c.queue.Add(name)
	}
}

// Beside takes in why nothing may be done on this cluster; "" is that it may.
func (c *Controller) Beside(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beside = why
	for name := range c.jobs {
		c.queue.Add(name)
	}
}

// Unknown is the number of deployments on the cluster that the hub does not
// know; they are kept.
func (c *Controller) Unknown() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, j := range c.jobs {
		if c.listed && j.desired == nil && j.record != nil && !j.record.Removing {
			n++
		}
	}
	return n
}

// update changes a job, which is made where there is none.
func (c *Controller) update(name string, change func(*job)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.jobs[name]
	if j == nil {
		j = &job{name: name}
		c.jobs[name] = j
	}
	change(j)
}

// look returns a copy of a job with what is known of its objects, and what is
// to be done about it.
func (c *Controller) look(name string) (job, Decision, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.jobs[name]
	if j == nil {
		return job{}, Decision{}, false
	}
	if j.record != nil {
		j.observed = c.observer.Findings(j.record.Owner().Label)
	}
	facts := j.facts(c.listed, c.clock.Now())
	facts.Beside = c.beside
	facts.Blocked, facts.Dependents = c.dependencies(j)
	return *j, Decide(facts), true
}

// visit acts on a deployment until it rests, reports, and returns when to look
// again by itself.
func (c *Controller) visit(ctx context.Context, name string) time.Duration {
	log := logr.FromContextOrDiscard(ctx).WithValues("deployment", name)
	for range maxSteps {
		j, decision, ok := c.look(name)
		if !ok || ctx.Err() != nil {
			return 0
		}
		log.V(1).Info("looked", "situation", decision.Situation)
		if decision.Action == Rest {
			return c.rest(ctx, j, decision)
		}
		if err := c.act(ctx, j, decision); err != nil && ctx.Err() == nil {
			log.Info("could not do what is called for; trying again", "situation", decision.Situation, "error", err.Error())
			c.failed(j, err)
		}
	}
	return retry.Max
}

// failed notes that what was done about a job, as it was looked at before, has
// failed. What was found meanwhile may be what it waits for.
func (c *Controller) failed(before job, err error) {
	c.update(before.name, func(j *job) {
		j.trouble = j.trouble.failed(j.attemptID(), nil, err, c.clock.Now(), rand.Float64).after(j.found != before.found)
		if fault.KindOf(err) == fault.Transient {
			j.spell = j.spell.lost()
		}
	})
}

// act takes the action that a decision calls for.
func (c *Controller) act(ctx context.Context, j job, d Decision) error {
	switch d.Action {
	case Forget:
		c.forget(j.name)
		return nil
	case Remove:
		return c.remove(ctx, j)
	case Deploy:
		return c.deploy(ctx, j)
	case Correct:
		return c.correct(ctx, j)
	case Note:
		return c.note(ctx, j)
	case Unmark:
		return c.unmark(ctx, j)
	case Rest:
	}
	return nil
}

// note takes down what the hub wants, which is applied. A release of something
// else that was given up is forgotten: it may be wanted again.
func (c *Controller) note(ctx context.Context, j job) error {
	next := j.next()
	if next.Release != nil && next.Release.ID != next.DeploymentID {
		next.Release = nil
	}
	return c.save(ctx, j.name, next)
}

// rest reports and returns when to look again.
func (c *Controller) rest(ctx context.Context, j job, d Decision) time.Duration {
	unstored := c.storeLater(ctx, j)
	if left := lookTime - c.clock.Since(j.trackedSince); left > 0 && j.awaitsLook() {
		return sooner(unstored, sooner(d.After, left))
	}
	c.tell(j, d)
	values := c.checkValues(ctx, j)
	if values == atOnce {
		return values // what it would report is not true any more
	}
	if err := c.report(ctx, j, d); err != nil {
		logr.FromContextOrDiscard(ctx).Info("could not report to the hub; trying again", "deployment", j.name, "error", err.Error())
		return c.unreported(j.name)
	}
	return sooner(unstored, sooner(d.After, values))
}

// storeLater stores a record that is newer than what is stored, and returns when
// to try again where it cannot. The hub hears how things stand all the same.
func (c *Controller) storeLater(ctx context.Context, j job) time.Duration {
	if !j.unsaved {
		return 0
	}
	err := c.store.Save(ctx, j.record)
	var pause time.Duration
	c.update(j.name, func(live *job) {
		if err != nil {
			live.unstored++
			pause = retry.After(live.unstored, rand.Float64)
			return
		}
		live.unstored = 0
		if live.record == j.record {
			live.unsaved = false
		}
	})
	if err != nil {
		logr.FromContextOrDiscard(ctx).Info("could not store the state; trying again", "deployment", j.name, "error", err.Error())
	}
	return pause
}

// sooner returns the shorter of two waits; 0 waits for nothing.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// forget drops a job of which nobody knows anything any more. The hub may have
// said something since that was decided.
func (c *Controller) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if j := c.jobs[name]; j != nil && j.desired == nil && j.record == nil {
		delete(c.jobs, name)
	}
}
