package deploy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-sh/flotilla/internal/agent/state"
	"github.com/flotilla-sh/flotilla/internal/apply"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// remove takes a deployment off the cluster, one step at a time. The mark is
// read anew from the hub before anything is touched.
func (c *Controller) remove(ctx context.Context, j job) error {
	if !j.record.Removing {
		return c.confirm(ctx, j)
	}
	if done, err := c.removalHooks(ctx, j, state.Before); !done {
		return c.heldUp(j.name, err)
	}
	next := *j.record
	if j.desired != nil {
		next.Options = j.desired.Spec.Options
	}
	c.observer.Begin(next.Owner())
	handed, err := c.handOver(ctx, &next, refsOf(next.Inventory))
	if err != nil {
		return err
	}
	next.Inventory = next.Inventory.Without(handed.free)
	d := c.deployment(&next, nil, false)
	d.Undecided = handed.undecided
	engine, err := c.as(ctx, next.Options)
	if err != nil {
		return c.heldUp(j.name, err)
	}
	result, err := engine.Remove(ctx, d)
	if err != nil {
		return err
	}
	next.Inventory, next.Held = result.Inventory, heldAfter(next.Held, result)
	if len(next.Inventory) > 0 {
		c.waitForRemoval(j.name, &next, result)
		return nil
	}
	j.record = &next
	if done, err := c.removalHooks(ctx, j, state.After); !done {
		return c.heldUp(j.name, err)
	}
	if gone, err := c.removeHooks(ctx, j.name, &next); !gone {
		return err
	}
	if gone := c.undress(ctx, engine, &next); !gone {
		return nil
	}
	if err := c.store.Delete(ctx, &next); err != nil {
		return err
	}
	label := next.Owner().Label
	c.update(j.name, func(j *job) {
		j.record, j.unsaved, j.observed, j.trouble = nil, false, nil, trouble{}
		j.removal = &fleet.RemovalStatus{Done: true, Message: removedMessage(next.Held)}
		delete(c.labels, label)
	})
	c.observer.Gone(ctx, label)
	c.wakeDependents(j.name)
	return nil
}

// undress takes off what the deployment has set on namespaces, and tells whether
// nothing is left of it. Where everything is kept, so is that.
func (c *Controller) undress(ctx context.Context, engine *apply.Engine, next *state.Record) bool {
	if next.Options.KeepResources {
		return true
	}
	left, failures := engine.Undress(ctx, next.Owner(), next.Dressed)
	next.Dressed = left
	if len(left) > 0 {
		c.waitForRemoval(next.Name, next, &apply.Result{Failures: failures})
	}
	return len(left) == 0
}

// confirm reads the deployment anew and notes that its mark is still there.
func (c *Controller) confirm(ctx context.Context, j job) error {
	if c.settles(j) {
		return nil
	}
	live, err := c.hub.Get(ctx, j.name)
	if apierrors.IsNotFound(err) {
		c.Vanished(j.name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("ask the hub whether the deployment is really to be removed: %w", err)
	}
	if live.Spec.Removal == nil || j.desired == nil || live.UID != j.desired.UID || older(j.record, live) {
		c.Received(live)
		return nil
	}
	next := *j.record
	// Nothing counts as applied from here on: a mark that is withdrawn half-way
	// makes everything be applied again.
	next.Removing, next.Applied = true, ""
	next.Inventory = next.Inventory.WithNamespaces(c.removalOptions(live))
	return c.save(ctx, j.name, &next)
}

// unmark forgets a mark that the hub has withdrawn, so that it can never be
// acted on later.
func (c *Controller) unmark(ctx context.Context, j job) error {
	next := *j.record
	next.Removing, next.Applied = false, ""
	c.update(j.name, func(j *job) { j.removal = nil })
	return c.save(ctx, j.name, &next)
}

// waitForRemoval stores and tells what is left.
func (c *Controller) waitForRemoval(name string, next *state.Record, result *apply.Result) {
	c.update(name, func(j *job) {
		j.record, j.unsaved = next, true
		j.removal = &fleet.RemovalStatus{Message: cut(failureText(result.Failures))}
		j.trouble = j.trouble.failed(j.attemptID(), result.Failures, nil, c.clock.Now(), rand.Float64)
	})
}

func removedMessage(held []apply.Ref) string {
	if len(held) == 0 {
		return ""
	}
	names := make([]string, 0, maxNamed)
	for _, ref := range held[:min(len(held), maxNamed)] {
		names = append(names, ref.String())
	}
	text := "kept on the cluster: " + strings.Join(names, ", ")
	if more := len(held) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// heldUp tells the hub why a removal does not go on.
func (c *Controller) heldUp(name string, err error) error {
	if err != nil {
		c.update(name, func(j *job) { j.removal = &fleet.RemovalStatus{Message: cut(err.Error())} })
	}
	return err
}

// removeHooks removes what hooks have left, and tells whether nothing is left.
func (c *Controller) removeHooks(ctx context.Context, name string, next *state.Record) (bool, error) {
	d := c.deployment(next, nil, false)
	for _, ref := range next.Hooks {
		d.Previous = append(d.Previous, apply.Entry{Ref: ref})
	}
	engine, err := c.as(ctx, next.Options)
	if err != nil {
		return false, c.heldUp(name, err)
	}
	result, err := engine.Remove(ctx, d)
	if err != nil {
		return false, err
	}
	next.Hooks, next.Held = nil, heldAfter(next.Held, result)
	for _, e := range result.Inventory {
		next.Hooks = append(next.Hooks, e.Ref)
	}
	if len(next.Hooks) > 0 {
		c.waitForRemoval(name, next, result)
		return false, nil
	}
	return true, nil
}
