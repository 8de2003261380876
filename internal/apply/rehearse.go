package apply

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// swayTimeout bounds the wait for the cluster to act by what was just
	// written: a quota, a class or a definition is known everywhere a moment
	// later.
	swayTimeout  = 5 * time.Second
	swayInterval = 250 * time.Millisecond
)

// Rehearse tries all that would be written, and returns what the cluster would
// refuse. What cannot be told yet, as in a namespace that is still to be made,
// counts as accepted, and so does what is refused by a state that the plan
// itself, or hooks that are still to run, may change.
func (e *Engine) Rehearse(ctx context.Context, p *Plan, hooks bool) ([]Failure, error) {
	r := &run{engine: e, plan: p, known: p.deployment.Previous.index(), outcomes: make([]*outcome, len(p.items))}
	all := r.writes(0, len(p.items))
	refusals := r.trial(ctx, all)
	maps.DeleteFunc(refusals, func(i int, why refused) bool {
		it := p.items[i]
		before := slices.DeleteFunc(slices.Clone(all), func(d int) bool { return stageOf(p.items[d]) > stageOf(it) })
		return why.answered() && (hooks && !why.whatever(it) || r.dresses(it, why) || r.serves(i, why, before) || len(r.deciders(i, why, before)) > 0)
	})
	r.refuse(refusals)
	return r.result.Failures, ctx.Err()
}

// rehearses tells whether a stage is tried before it is written: where it
// changes what runs, and a refusal would leave it half done. One write is
// refused or done as a whole, unless it has to wait for what was written before
// it; and what is all new breaks nothing.
func (r *run) rehearses(stage []int) bool {
	half := len(stage) > 1 || len(stage) == 1 && slices.ContainsFunc(r.outcomes, (*outcome).written)
	return half && slices.ContainsFunc(stage, func(i int) bool { return r.intended(r.plan.items[i]).UID != "" })
}

// writes returns those of items[from:to] that are to be written.
func (r *run) writes(from, to int) []int {
	var out []int
	for i := from; i < to; i++ {
		if r.outcomes[i] == nil && !r.unchanged(r.plan.items[i]) {
			out = append(out, i)
		}
	}
	return out
}

// prepare rehearses a stage, and stops the run where something is refused for
// certain: nothing is written then. Where other objects of the run decide on
// what is refused, these are written first, and what was refused is tried again
// before anything else is written.
func (r *run) prepare(ctx context.Context, all []int) error {
	refusals := r.trial(ctx, all)
	// What waits for a webhook of the plan is written in its turn, after what
	// serves that.
	maps.DeleteFunc(refusals, func(i int, why refused) bool { return why.answered() && r.serves(i, why, all) })
	certain, first := maps.Clone(refusals), map[int]bool{}
	for i, why := range refusals {
		deciders := r.deciders(i, why, all)
		if len(deciders) == 0 {
			continue
		}
		delete(certain, i)
		for _, d := range deciders {
			if _, refused := refusals[d]; !refused && r.outcomes[d] == nil {
				first[d] = true
			}
		}
	}
	if len(certain) > 0 || len(refusals) == 0 {
		r.refuse(certain)
		return ctx.Err()
	}
	for _, i := range slices.Sorted(maps.Keys(first)) {
		if err := r.group(ctx, i, i+1); err != nil || r.halted {
			return err
		}
	}
	r.refuse(r.patiently(ctx, refusals))
	return ctx.Err()
}

// patiently tries what was refused until it is accepted, and returns what is
// still refused after a while.
func (r *run) patiently(ctx context.Context, refusals map[int]refused) map[int]refused {
	_ = wait.PollUntilContextTimeout(ctx, swayInterval, swayTimeout, true, func(ctx context.Context) (bool, error) {
		if again := r.trial(ctx, slices.Sorted(maps.Keys(refusals))); ctx.Err() == nil {
			refusals = again
		}
		return len(refusals) == 0, nil
	})
	return refusals
}

// deciders returns what may change why item i is refused: what this run has
// written, and what it is to write.
func (r *run) deciders(i int, why refused, writes []int) []int {
	if !why.answered() {
		return nil
	}
	var out []int
	for d, it := range r.plan.items {
		if d != i && (r.outcomes[d].written() || slices.Contains(writes, d)) && decides(it, r.plan.items[i], why) {
			out = append(out, d)
		}
	}
	return out
}

// serves tells whether item i is refused, or not judged, by a webhook that the
// plan brings with it, while something of what serves that is to be written.
func (r *run) serves(i int, why refused, writes []int) bool {
	it := r.plan.items[i]
	return !why.whatever(it) && r.plan.bringsJudge(it) &&
		slices.ContainsFunc(writes, func(d int) bool { return d != i && isServer(r.plan.items[d].ref) })
}

// dresses tells whether an item is refused by its namespace, on which labels
// are still to be set.
func (r *run) dresses(it item, why refused) bool {
	d := &r.plan.deployment
	return !d.Dress.empty() && !d.Dress.Worn(d.Dressed) && decides(item{obj: d.Dress.Object(), ref: d.Dress.ref()}, it, why)
}

// rehearse tries to write items, and records those that the cluster would
// refuse.
func (r *run) rehearse(ctx context.Context, items []int) { r.refuse(r.trial(ctx, items)) }

// refuse records what the cluster would refuse.
func (r *run) refuse(refusals map[int]refused) {
	for _, i := range slices.Sorted(maps.Keys(refusals)) {
		entry := r.intended(r.plan.items[i])
		r.record(i, outcome{entry: &entry, err: refusals[i].err})
		r.halted = true
	}
}

// trial tries to write items, and returns those that the cluster would refuse.
func (r *run) trial(ctx context.Context, items []int) map[int]refused {
	whys := make([]refused, len(items))
	var g errgroup.Group
	g.SetLimit(parallel)
	for n, i := range items {
		g.Go(func() error {
			whys[n] = r.try(ctx, r.plan.items[i])
			return nil
		})
	}
	_ = g.Wait()
	refusals := map[int]refused{}
	for n, i := range items {
		if whys[n].err != nil {
			refusals[i] = whys[n]
		}
	}
	return refusals
}

// try tries to write one item, and returns why it would fail.
func (r *run) try(ctx context.Context, it item) refused {
	it, err := r.ceding(ctx, it)
	if err != nil {
		return refused{cause: err, err: err}
	}
	g := guard{uid: types.UID(r.intended(it).UID)}
	_, err = r.send(ctx, it, g, metav1.DryRunAll)
	if err == nil || tellsNothing(err) {
		return refused{}
	}
	return refused{cause: err, err: r.refusal(ctx, it, g, err)}
}

// tellsNothing tells whether a trial has failed for what says nothing about the
// write: a webhook that knows no dry run, an object that is another than it was
// or that somebody else has, a namespace or kind that is not there yet.
func tellsNothing(err error) bool {
	return apierrors.IsBadRequest(err) || apierrors.IsNotFound(err) || guardFailed(err) || IsNoKind(err)
}

// refusal gives a refused write its kind; nil where the object is to be deleted
// and made anew.
func (r *run) refusal(ctx context.Context, it item, g guard, err error) error {
	if g.uid == "" || !apierrors.IsInvalid(err) || !r.engine.client.acceptsNew(ctx, it.obj) {
		return rejected(it, err)
	}
	if r.plan.deployment.Options.Recreate && !Holds(it.ref) {
		return nil
	}
	return immutable(it, err)
}
