package deploy

import (
	"context"

	"github.com/flotilla-sh/flotilla/internal/agent/state"
	"github.com/flotilla-sh/flotilla/internal/apply"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// goodBefore returns what to go back to should the next release fail: what runs
// now, or where that is a release that did not succeed, what ran before it.
func goodBefore(r *state.Record, o fleet.BundleDeploymentOptions) *state.Good {
	if r == nil || o.Helm == nil || !o.Helm.Atomic {
		return nil
	}
	if !r.Runs() {
		return r.Good
	}
	return &state.Good{ID: r.Applied, Refs: r.Refs, Options: r.Options, Rendered: r.Rendered}
}

// giveUp stores that the release has failed. Where there is something to go back
// to, that comes next.
func (r *release) giveUp(ctx context.Context, why string) error {
	return r.store(ctx, func(now *state.Release) {
		now.Failed, now.Broken = why, nil
		if r.record.Good != nil {
			now.Failed, now.Phase = why+"; went back to what ran before (helm.atomic)", state.Undo
		}
	})
}

// undo puts the last good content back, without any hooks: those of a release
// that has failed have run, or have failed themselves.
func (c *Controller) undo(ctx context.Context, j job) error {
	good := j.record.Good
	back := *j.record
	back.Refs, back.Options, back.Rendered = good.Refs, good.Options, good.Rendered
	local := j
	local.desired = nil
	objects, err := c.fetch(ctx, local, &back)
	if err != nil {
		return err
	}
	plan, err := c.engine.Plan(ctx, c.deployment(&back, objects, false))
	if err != nil {
		return err
	}
	// The content that has failed stays in the record until the good one is
	// back, so that an agent that starts anew goes on with it.
	next := *j.record
	next.Inventory, next.Dressed = plan.Intent(), plan.Dressing()
	if err := c.save(ctx, j.name, &next); err != nil {
		return err
	}
	kept := next
	_, err = c.run(ctx, &kept, plan, apply.Everything, func(done *state.Record) {
		over := *done.Release
		over.Phase = state.Over
		done.Release, done.Good = &over, nil
		done.Applied, done.Refs, done.Options, done.Rendered = good.ID, good.Refs, good.Options, good.Rendered
	})
	return err
}
