// Package drift looks at the objects of deployments when a watch says that
// something may have happened to them, and now and then at all of them, and
// remembers what it finds.
package drift

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/backoff"
	"github.com/flotilla-sh/flotilla/internal/observe"
)

const (
	// fullCheck is how often every object is looked at, give or take jitter.
	fullCheck = 40 * time.Minute
	workers   = 2
)

// retry is when objects that could not be read are tried again.
var retry = backoff.Backoff{Min: 2 * time.Second, Max: 5 * time.Minute, Jitter: 0.5}

// Deployments is where the controller asks what is wanted, and tells that it
// has found something new.
type Deployments interface {
	Wanted(ctx context.Context, label string) (observe.Wanted, error)
	Found(label string)
}

// key is one look at a deployment.
type key struct {
	label string
	full  bool
}

// Controller looks at objects.
type Controller struct {
	tracker *observe.Tracker
	checker *observe.Checker
	queue   workqueue.TypedDelayingInterface[key]

	mu       sync.Mutex
	findings map[string]map[apply.Ref]observe.Finding
	looking  map[string]*sync.Mutex
	timed    map[string]bool
	failures map[string]int
	// renewed counts the applies since which findings were kept.
	renewed map[string]int
}

// New returns a controller that looks with checker.
func New(checker *observe.Checker) *Controller {
	return &Controller{
		checker:  checker,
		queue:    workqueue.NewTypedDelayingQueue[key](),
		findings: map[string]map[apply.Ref]observe.Finding{},
		looking:  map[string]*sync.Mutex{},
		timed:    map[string]bool{},
		failures: map[string]int{},
		renewed:  map[string]int{},
	}
}

// Use sets the tracker that says what to look at.
func (c *Controller) Use(t *observe.Tracker) { c.tracker = t }

// Notify asks for a look at a deployment.
func (c *Controller) Notify(label string, after time.Duration) {
	c.queue.AddAfter(key{label: label}, after)
}

// Run looks at deployments until ctx ends.
func (c *Controller) Run(ctx context.Context, of Deployments) {
	go func() {
		<-ctx.Done()
		c.queue.ShutDown()
	}()
	var group sync.WaitGroup
	for range workers {
		group.Go(func() { c.work(ctx, of) })
	}
	group.Wait()
}

func (c *Controller) work(ctx context.Context, of Deployments) {
	for {
		k, stop := c.queue.Get()
		if stop {
			return
		}
		stirred := c.tracker.Stirred(k.label)
		if c.visit(ctx, of, k) || stirred {
			of.Found(k.label)
		}
		c.queue.Done(k)
	}
}

// visit looks at a deployment, again later where it could not, and tells
// whether it found anything new.
func (c *Controller) visit(ctx context.Context, of Deployments, k key) bool {
	changed, err := c.look(ctx, of, k)
	if err != nil && ctx.Err() == nil {
		logr.FromContextOrDiscard(ctx).Info("could not look at all objects; trying again", "deployment", k.label, "error", err.Error())
		c.queue.AddAfter(key{label: k.label}, c.failed(k.label))
		return changed
	}
	c.succeeded(k.label)
	return changed
}

// failed counts a failure and returns when to try again.
func (c *Controller) failed(label string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures[label]++
	return retry.After(c.failures[label], rand.Float64)
}

func (c *Controller) succeeded(label string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.failures, label)
}

// Look looks at what there is to look at in a deployment, at once.
func (c *Controller) Look(ctx context.Context, of Deployments, label string) {
	c.visit(ctx, of, key{label: label})
}

// Read looks at what there is to look at in a deployment, and says why it could
// not.
func (c *Controller) Read(ctx context.Context, of Deployments, label string) error {
	_, err := c.look(ctx, of, key{label: label})
	return err
}

// look tells whether anything was found to be other than before.
func (c *Controller) look(ctx context.Context, of Deployments, k key) (bool, error) {
	lock := c.lock(k.label)
	lock.Lock()
	defer lock.Unlock()
	if !c.tracker.Knows(k.label) {
		c.Forget(k.label) // it went while the look was queued
		return false, nil
	}
	c.scheduleFull(k)
	renewed := c.renewals(k.label)
	targets, touched := c.tracker.Targets(k.label, k.full), c.tracker.Touched(k.label, k.full)
	if len(targets) == 0 && !touched {
		return false, nil
	}
	wanted, err := of.Wanted(ctx, k.label)
	changed := false
	if err == nil && touched {
		changed, err = c.dress(ctx, wanted, renewed)
	}
	if err != nil {
		c.retry(k.label, targets)
		if touched {
			c.tracker.Retouch(k.label)
		}
		return false, err
	}
	more, err := c.check(ctx, wanted, targets)
	return changed || more, err
}

// dress looks at what a bundle has set on its namespace. What was wanted before
// an apply says nothing after it.
func (c *Controller) dress(ctx context.Context, w observe.Wanted, renewed int) (bool, error) {
	if w.Dress.Namespace == "" {
		return false, nil
	}
	finding, err := c.checker.Dressed(ctx, w)
	if err != nil {
		return false, err
	}
	label := w.Owner.Label
	c.mu.Lock()
	_, known := c.findings[label][finding.Ref.Identity()]
	c.mu.Unlock()
	if finding.Drift == nil && !known {
		return false, nil
	}
	stands := func() bool { return c.renewed[label] == renewed }
	fresh, kept := c.remember(label, finding, stands)
	if !kept {
		c.tracker.Retouch(label)
		c.Notify(label, 0)
	}
	return fresh, nil
}

// check looks at each target. One that the API server refuses to show keeps
// nobody from looking at the others; where there is no answer, all are put off.
func (c *Controller) check(ctx context.Context, w observe.Wanted, targets []observe.Target) (bool, error) {
	changed := false
	var errs []error
	for i, target := range targets {
		finding, err := c.one(ctx, w, target)
		if err == nil {
			stands := func() bool { return c.tracker.Tracks(w.Owner.Label, target.Entry) }
			fresh, _ := c.remember(w.Owner.Label, finding, stands)
			changed = changed || fresh
			continue
		}
		errs = append(errs, err)
		if apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
			c.retry(w.Owner.Label, targets[i:])
			break
		}
		c.retry(w.Owner.Label, targets[i:i+1])
	}
	return changed, errors.Join(errs...)
}

func (c *Controller) one(ctx context.Context, w observe.Wanted, target observe.Target) (observe.Finding, error) {
	if target.Look == observe.LookHealth {
		finding, err := c.checker.Health(ctx, target.Entry.Ref, w)
		if err != nil || finding.Drift != nil {
			return finding, err
		}
		// A read for health must not hide a drift that was found before, nor
		// one that the read object shows.
		if finding.Seen.Fields == target.Entry.Fields && !c.Drifted(w.Owner.Label, target.Entry.Ref) {
			return finding, nil
		}
	}
	desired, ok, err := w.Object(target.Entry.Ref)
	if err != nil {
		return observe.Finding{}, err
	}
	if !ok {
		// Something else is on its way to it.
		return c.checker.Health(ctx, target.Entry.Ref, w)
	}
	return c.checker.Drift(ctx, desired, target.Entry, w)
}

// Drifted tells whether an object was found to be not as it was applied.
func (c *Controller) Drifted(label string, ref apply.Ref) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.findings[label][ref.Identity()].Drift != nil
}

// remember keeps a finding that still stands, and tells whether it says something
// new. What was compared with what is not wanted any more says nothing: it was
// applied meanwhile.
func (c *Controller) remember(label string, f observe.Finding, stands func() bool) (fresh, kept bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !stands() {
		return false, false
	}
	if f.Drift == nil && f.Seen.UID != "" {
		c.tracker.Accept(label, f.Ref, f.Seen)
	}
	all := c.findings[label]
	if all == nil {
		all = map[apply.Ref]observe.Finding{}
		c.findings[label] = all
	}
	old, known := all[f.Ref.Identity()]
	all[f.Ref.Identity()] = f
	return !known || !same(old, f), true
}

func same(a, b observe.Finding) bool {
	if a.Health != b.Health || (a.Drift == nil) != (b.Drift == nil) {
		return false
	}
	return a.Drift == nil || a.Drift.Patch == b.Drift.Patch && a.Drift.Create == b.Drift.Create &&
		a.Drift.Exist == b.Drift.Exist && slices.Equal(a.Drift.Fields, b.Drift.Fields)
}

// Findings returns what is known of a deployment's objects.
func (c *Controller) Findings(label string) map[apply.Ref]observe.Finding {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.findings[label])
}

// Renew forgets findings about objects that were written since, or are not in
// the inventory any more.
func (c *Controller) Renew(label string, inventory apply.Inventory, written map[apply.Ref]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keep := map[apply.Ref]observe.Finding{}
	for _, e := range inventory {
		if f, ok := c.findings[label][e.Identity()]; ok && !written[e.Identity()] {
			keep[e.Identity()] = f
		}
	}
	c.findings[label] = keep
	c.renewed[label]++
}

// renewals counts the applies of a deployment.
func (c *Controller) renewals(label string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.renewed[label]
}

// Forget drops a deployment.
func (c *Controller) Forget(label string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.findings, label)
	delete(c.looking, label)
	delete(c.timed, label)
	delete(c.failures, label)
	delete(c.renewed, label)
}

func (c *Controller) retry(label string, targets []observe.Target) {
	for _, t := range targets {
		c.tracker.Retry(label, t)
	}
}

func (c *Controller) lock(label string) *sync.Mutex {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.looking[label] == nil {
		c.looking[label] = &sync.Mutex{}
	}
	return c.looking[label]
}

// scheduleFull plans the next look at everything.
func (c *Controller) scheduleFull(k key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed[k.label] && !k.full {
		return
	}
	c.timed[k.label] = true
	c.queue.AddAfter(key{label: k.label, full: true}, backoff.Spread(fullCheck, 0.5, rand.Float64))
}
