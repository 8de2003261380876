package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/flotilla-sh/flotilla/internal/agent/state"
	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/hook"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// hookTimeout bounds each hook where timeoutSeconds says nothing.
const hookTimeout = 5 * time.Minute

// release is a release under way.
type release struct {
	*Controller
	// engine acts as the deployment's account.
	engine *apply.Engine
	plan   *apply.Plan
	// record is what is stored next.
	record *state.Record
	// found counts what was found until the release was looked at.
	found int
}

// deploy brings the cluster to what is wanted, as far as it gets without
// waiting. What is about to be done is stored before, so that the next start
// finishes it.
func (c *Controller) deploy(ctx context.Context, j job) error {
	if j.givenUp() && j.record.Release.Phase == state.Undo && !j.stale {
		return c.undo(ctx, j)
	}
	next := j.next()
	if j.desired != nil {
		next.Hub = c.hubIdentity(ctx, next.Hub)
	}
	objects, err := c.fetch(ctx, j, next)
	if err != nil {
		return err
	}
	c.begin(j, next)
	plan, err := c.engine.Plan(ctx, c.deployment(next, objects, next.Release.Reapply))
	if err != nil {
		return err
	}
	if len(plan.Leaving()) > 0 && c.settles(j) {
		return nil
	}
	next.Applied = j.appliedBefore()
	next.Dressed = plan.Dressing()
	next.Inventory, next.Hooks = plan.Intent(), withRefs(next.Hooks, plan.Hooks())
	next.DeleteHooks = plan.HasHooks(hook.PreDelete) || plan.HasHooks(hook.PostDelete)
	if err := c.save(ctx, j.name, next); err != nil {
		return err
	}
	c.update(j.name, func(j *job) { j.stale = false }) // it is released from here on
	kept := *next
	engine, err := c.as(ctx, kept.Options)
	if err != nil {
		return err
	}
	r := &release{Controller: c, engine: engine, plan: plan, record: &kept, found: j.found}
	return r.proceed(ctx)
}

// begin starts a release where none of what is wanted is under way. One that was
// given up is never continued: what has changed since is a release of its own.
func (c *Controller) begin(j job, next *state.Record) {
	content := next.Refs[0].ID()
	if now := next.Release; now != nil && now.ID == next.DeploymentID && now.Content == content && now.Failed == "" {
		return
	}
	event := state.Install
	if next.Installed || next.Applied != "" {
		event = state.Upgrade
	}
	next.Good = goodBefore(j.record, next.Options)
	next.Release = state.NewRelease(next.DeploymentID, event, c.clock.Now())
	next.Release.Content = content
	if next.Rendered != nil {
		next.Release.Input = next.Rendered.Input
	}
	next.Release.Reapply = j.record != nil && j.record.Options.ForceSyncGeneration != next.Options.ForceSyncGeneration
}

// withRefs adds refs that a list has not yet.
func withRefs(list, more []apply.Ref) []apply.Ref {
	out := slices.Clone(list)
	for _, ref := range more {
		if !slices.Contains(out, ref) {
			out = append(out, ref)
		}
	}
	slices.SortFunc(out, apply.Ref.Compare)
	return out
}

// proceed takes one phase after the other until one has to wait or fails.
func (r *release) proceed(ctx context.Context) error {
	for r.record.Release != nil {
		on, err := r.phase(ctx)
		if err != nil || !on {
			return err
		}
	}
	return nil
}

// phase does what the phase asks for, and tells whether to go on.
func (r *release) phase(ctx context.Context) (bool, error) {
	current := r.record.Release
	if current.Broken != nil {
		return false, r.broken(ctx)
	}
	switch current.Phase {
	case state.Before, state.After:
		if tried, err := r.rehearse(ctx); !tried || err != nil {
			return false, err
		}
		if !r.plan.HasHooks(current.Hooks(current.Phase)) {
			r.turn(r.record)
			return true, nil
		}
		return r.hooks(ctx)
	case state.Definitions:
		if !r.plan.HasHooks(current.Hooks(state.Before)) {
			r.turn(r.record)
			return true, nil
		}
		failures, err := r.run(ctx, r.record, r.plan, apply.Definitions, r.turn)
		return len(failures) == 0, err
	case state.Copies:
		if !r.plan.HasHooks(current.Hooks(state.Before)) || !r.plan.HasCopies() {
			r.turn(r.record)
			return true, nil
		}
		failures, err := r.run(ctx, r.record, r.plan, apply.Copies, r.turn)
		return len(failures) == 0, err
	case state.Objects:
		return r.objects(ctx)
	case state.Undo, state.Over:
		// That is nothing that a plan of what is wanted does.
	}
	return false, nil
}

// turn takes a record to the next phase, and to the end where nothing is left
// to be done, so that all of it is stored at once.
func (r *release) turn(record *state.Record) {
	record.Release = record.Release.Next()
	if record.Release.Phase == state.After && !r.plan.HasHooks(record.Release.Hooks(state.After)) {
		record.Release = record.Release.Next()
	}
	if record.Release.Phase == state.Over {
		record.Applied, record.Installed, record.Release, record.Good = record.DeploymentID, true, nil, nil
	}
}

// hooks runs the hooks of the phase and tells whether all are finished.
func (r *release) hooks(ctx context.Context) (bool, error) {
	current := r.record.Release
	r.observer.Await(ctx, r.record.Owner(), r.plan.RunningHooks(current.Hooks(current.Phase)))
	done, err := r.engine.RunHooks(ctx, r.plan, current.HookRun())
	if err == nil {
		return true, r.passed(ctx, done)
	}
	broken, ok := errors.AsType[*apply.HookError](err)
	if len(done) > len(current.Done) {
		if err := r.store(ctx, func(now *state.Release) { now.Done, now.Spent = done, 0 }); err != nil {
			return false, err
		}
	}
	if !ok || fault.KindOf(err) == fault.Transient {
		return false, err
	}
	left, serr := r.left(ctx, timeoutOf(r.record.Options))
	if serr != nil {
		return false, serr
	}
	switch {
	case fault.KindOf(err) == fault.Stalled:
		return false, r.failed(ctx, broken, err)
	case left <= 0 && (fault.ReasonOf(err, "") == apply.ReasonHookRunning || apply.IsRefused(err)):
		return false, r.failed(ctx, broken, fmt.Errorf("%w; it was given %s (helm.timeoutSeconds)", err, timeoutOf(r.record.Options)))
	case fault.ReasonOf(err, "") == apply.ReasonHookRunning:
		r.await("waits for "+err.Error(), false, min(fault.AfterOf(err), left))
		return false, nil
	}
	return false, err
}

// timeoutOf is how long each hook is given.
func timeoutOf(o fleet.BundleDeploymentOptions) time.Duration {
	if o.Helm != nil && o.Helm.TimeoutSeconds > 0 {
		return time.Duration(o.Helm.TimeoutSeconds) * time.Second
	}
	return hookTimeout
}

// passed deletes the hooks that are to be deleted now that all are finished,
// and stores that they are. That they are finished is stored before: what is
// deleted cannot tell any more.
func (r *release) passed(ctx context.Context, done []apply.Ref) error {
	current := r.record.Release
	event := current.Hooks(current.Phase)
	if len(r.plan.Dropped(event, nil)) > 0 && len(done) > len(current.Done) {
		if err := r.store(ctx, func(now *state.Release) { now.Done = done }); err != nil {
			return err
		}
	}
	if err := r.drop(ctx, event, nil); err != nil {
		return err
	}
	next := *r.record
	r.turn(&next)
	if err := r.save(ctx, next.Name, &next); err != nil {
		return err
	}
	*r.record = next
	return nil
}

// failed stores that a hook has failed. What is to be deleted then is, before
// the release is given up.
func (r *release) failed(ctx context.Context, at *apply.HookError, why error) error {
	if len(r.plan.Dropped(at.Event, &at.Ref)) == 0 {
		return r.giveUp(ctx, why.Error())
	}
	if err := r.store(ctx, func(now *state.Release) { now.Broken = &state.Broken{Hook: at.Ref, Why: why.Error()} }); err != nil {
		return err
	}
	return r.broken(ctx)
}

// broken gives up a release of which a hook has failed.
func (r *release) broken(ctx context.Context) error {
	current := r.record.Release
	if err := r.drop(ctx, current.Hooks(current.Phase), &current.Broken.Hook); err != nil {
		return err
	}
	return r.giveUp(ctx, current.Broken.Why)
}

func (r *release) drop(ctx context.Context, event hook.Event, failed *apply.Ref) error {
	r.observer.Await(ctx, r.record.Owner(), nil)
	gone, err := r.engine.DropHooks(ctx, r.plan, event, failed)
	if len(gone) > 0 {
		// Not worth a write of its own: what is not there is easily found so.
		r.record.Hooks = slices.DeleteFunc(slices.Clone(r.record.Hooks), func(ref apply.Ref) bool { return slices.Contains(gone, ref) })
		kept := *r.record
		r.update(kept.Name, func(j *job) { j.record, j.unsaved = &kept, true })
	}
	return err
}

// store changes the release under way and stores it.
func (r *release) store(ctx context.Context, change func(*state.Release)) error {
	next, now := *r.record, *r.record.Release
	change(&now)
	next.Release = &now
	if err := r.save(ctx, next.Name, &next); err != nil {
		return err
	}
	*r.record = next
	return nil
}

// awaiting is what a release waits for.
type awaiting struct {
	// id is the deployment ID that is released.
	id string
	// message says it to people.
	message string
	// late is true where it has taken longer than it was given.
	late bool
	// until is when to look by itself.
	until time.Time
}

// await puts a release off until something is found, and no longer than after.
func (r *release) await(message string, late bool, after time.Duration) {
	r.update(r.record.Name, func(j *job) {
		j.awaits = awaiting{id: r.record.DeploymentID, message: message, late: late}
		if j.found == r.found {
			j.awaits.until = r.clock.Now().Add(after)
		}
		r.labels[r.record.Owner().Label] = r.record.Name
	})
}
