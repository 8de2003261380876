package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/flotilla-sh/flotilla/internal/agent/state"
	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/fault"
)

// removalHooks runs the hooks of a phase of a removal, and tells whether nothing
// is left of them to be done. A hook that has failed is run again later: nothing else
// could bring the removal on.
func (c *Controller) removalHooks(ctx context.Context, j job, phase state.Phase) (bool, error) {
	now := j.record.Release
	if !j.record.DeleteHooks || keeps(&j) || now != nil && now.Event == state.Delete && now.Phase == state.Over {
		return true, nil
	}
	if now == nil || now.Event != state.Delete {
		now = state.NewRelease(j.record.DeploymentID, state.Delete, c.clock.Now())
	}
	if phaseOrder(now.Phase) > phaseOrder(phase) {
		return true, nil
	}
	for phaseOrder(now.Phase) < phaseOrder(phase) {
		now = now.Next()
	}
	next := *j.record
	next.Release = now
	if err := c.save(ctx, j.name, &next); err != nil {
		return false, err
	}
	// What is run is of the content that is here, not of what the hub wants.
	local := j
	local.desired = nil
	plan, err := c.plan(ctx, local)
	if err != nil {
		return false, err
	}
	engine, err := c.as(ctx, next.Options)
	if err != nil {
		return false, err
	}
	r := &release{Controller: c, engine: engine, plan: plan, record: &next, found: j.found}
	return r.removalHooks(ctx)
}

// keeps tells whether a removal leaves everything on the cluster.
func keeps(j *job) bool {
	if j.desired != nil {
		return j.desired.Spec.Options.KeepResources
	}
	return j.record.Options.KeepResources
}

func phaseOrder(p state.Phase) int {
	return slices.Index([]state.Phase{state.Before, state.Objects, state.After, state.Over}, p)
}

func (r *release) removalHooks(ctx context.Context) (bool, error) {
	current := r.record.Release
	event := current.Hooks(current.Phase)
	r.observer.Await(ctx, r.record.Owner(), r.plan.RunningHooks(event))
	done, err := r.engine.RunHooks(ctx, r.plan, current.HookRun())
	if err == nil {
		if err := r.store(ctx, func(now *state.Release) { *now = *now.Next() }); err != nil {
			return false, err
		}
		return false, r.drop(ctx, event, nil)
	}
	broken, ok := errors.AsType[*apply.HookError](err)
	if len(done) > len(current.Done) {
		if serr := r.store(ctx, func(now *state.Release) { now.Done, now.Spent = done, 0 }); serr != nil {
			return false, serr
		}
	}
	if !ok || fault.KindOf(err) == fault.Transient {
		return false, err
	}
	left, serr := r.left(ctx, timeoutOf(r.record.Options))
	if serr != nil {
		return false, serr
	}
	if fault.KindOf(err) == fault.Stalled || left <= 0 {
		// The next attempt is a run of its own.
		anew := state.NewRelease(current.ID, state.Delete, r.clock.Now())
		anew.Phase = current.Phase
		if serr := r.store(ctx, func(now *state.Release) { *now = *anew }); serr != nil {
			return false, serr
		}
		if derr := r.drop(ctx, broken.Event, &broken.Ref); derr != nil {
			return false, derr
		}
		return false, fmt.Errorf("%s; it is run again later: mend what it needs, or set keepResources to leave everything on the cluster", err) //nolint:errorlint // its kind ends here: it is tried again, whatever it was
	}
	return false, err
}
