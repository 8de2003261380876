package deploy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/flotilla-sh/flotilla/internal/agent/state"
	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/fault"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// readyRetry is when to look at a release again that waits for objects of which
// no watch has told.
const readyRetry = time.Minute

// objects applies the next wave, and tells whether to go on: at once after the
// last, unless the options want everything to be ready.
func (r *release) objects(ctx context.Context) (bool, error) {
	waves := r.plan.Waves()
	index := min(r.record.Release.Wave, len(waves)-1)
	last := index == len(waves)-1
	waits := !last || timeout(r.record.Options) > 0
	if last {
		if err := r.letGo(ctx); err != nil {
			return false, err
		}
	}
	then := r.turn
	if waits {
		then = func(*state.Record) {}
	}
	failures, err := r.run(ctx, r.record, r.plan, waves[index], then)
	if err != nil {
		return false, err
	}
	if len(failures) > 0 {
		return false, r.refused(ctx, failures)
	}
	if !waits {
		return true, nil
	}
	unready, err := r.unready(ctx, waves, index)
	if err != nil {
		return false, err
	}
	if len(unready) > 0 {
		if err := r.sure(ctx, timeout(r.record.Options), unready); err != nil {
			return false, err
		}
		if unready, err = r.unready(ctx, waves, index); err != nil {
			return false, err
		}
	}
	if len(unready) > 0 {
		return false, r.unsettled(ctx, unready)
	}
	return true, r.settled(ctx, last)
}

// rehearse tries all that an upgrade writes before its first hook runs or its
// first wave is applied, and tells whether all of it may be accepted. Where there
// is only one step, that step tries by itself what it writes.
func (r *release) rehearse(ctx context.Context) (bool, error) {
	now := r.record.Release
	hooks := r.plan.HasHooks(now.Hooks(state.Before))
	if now.Event != state.Upgrade || now.Phase != state.Before || now.Rehearsed || !hooks && len(r.plan.Waves()) == 1 {
		return true, nil
	}
	failures, err := r.engine.Rehearse(ctx, r.plan, hooks)
	if err != nil {
		return false, err
	}
	if len(failures) == 0 {
		return true, r.store(ctx, func(now *state.Release) { now.Rehearsed = true })
	}
	r.update(r.record.Name, func(j *job) {
		j.trouble = j.trouble.failed(r.record.DeploymentID, failures, nil, r.clock.Now(), rand.Float64)
	})
	return false, r.refused(ctx, failures)
}

// settled stores that a wave is ready.
func (r *release) settled(ctx context.Context, last bool) error {
	next := *r.record
	if last {
		r.turn(&next)
	} else {
		now := *next.Release
		now.Wave, now.Spent = now.Wave+1, 0
		next.Release = &now
	}
	*r.record = next
	return r.save(ctx, next.Name, &next)
}

// letGo hands what leaves the deployment to those who want it, before it would
// be pruned.
func (r *release) letGo(ctx context.Context) error {
	handed, err := r.handOver(ctx, r.record, refsOf(r.plan.Leaving()))
	if err != nil {
		return err
	}
	r.plan.Without(handed.free)
	r.plan.Undecided(handed.undecided)
	return nil
}

// timeout is how long each wave may take to be ready; 0 waits for as long as it
// takes, and for the last one not at all.
func timeout(o fleet.BundleDeploymentOptions) time.Duration {
	if o.Helm == nil {
		return 0
	}
	return time.Duration(max(o.Helm.TimeoutSeconds, 0)) * time.Second
}

// unsettled waits for what is not ready. What takes longer than it was given is
// a failure; without atomic it may still become ready.
func (r *release) unsettled(ctx context.Context, unready []laggard) error {
	text, given, again := lagging(unready), timeout(r.record.Options), readyRetry
	if allSilent(unready) {
		again = silence
	}
	left, err := r.left(ctx, given)
	if err != nil {
		return err
	}
	switch {
	case given == 0:
		r.await("waits for "+text, false, again)
	case left > 0:
		r.await("waits for "+text, false, min(again, left))
	case r.record.Good != nil:
		return r.giveUp(ctx, tooLate(given, text))
	default:
		r.await(tooLate(given, text), true, readyRetry)
	}
	return nil
}

func tooLate(given time.Duration, text string) string {
	return fmt.Sprintf("not ready within %s (helm.timeoutSeconds): %s", given, text)
}

// refused gives a release up where there is something to go back to, and an
// object will not be accepted, or not in time.
func (r *release) refused(ctx context.Context, failures []apply.Failure) error {
	if r.record.Good == nil {
		return nil
	}
	if slices.ContainsFunc(failures, func(f apply.Failure) bool { return fault.KindOf(f.Err) == fault.Stalled || apply.IsRefused(f.Err) }) {
		return r.giveUp(ctx, failureText(failures))
	}
	if slices.ContainsFunc(failures, func(f apply.Failure) bool { return unanswered(f.Err) }) {
		r.update(r.record.Name, func(j *job) { j.spell = j.spell.lost() })
		return nil
	}
	given := timeout(r.record.Options)
	left, err := r.left(ctx, given)
	if err != nil || given == 0 || left >= 0 {
		return err
	}
	return r.giveUp(ctx, failureText(failures))
}
