package apply

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Rehearse tries all that would be written, and returns what the cluster would
// refuse. What cannot be told yet, as in a namespace that is still to be made,
// counts as accepted.
func (e *Engine) Rehearse(ctx context.Context, p *Plan) ([]Failure, error) {
	r := &run{engine: e, plan: p, known: p.deployment.Previous.index(), outcomes: make([]*outcome, len(p.items))}
	r.rehearse(ctx, r.writes(0, len(p.items)))
	return r.result.Failures, ctx.Err()
}

// rehearses tells whether a stage is tried before it is written: where it
// changes what runs, and a refusal would leave it half done. One write is
// refused or done as a whole, and what is all new breaks nothing.
func (r *run) rehearses(stage []int) bool {
	return len(stage) > 1 && slices.ContainsFunc(stage, func(i int) bool { return r.intended(r.plan.items[i]).UID != "" })
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

// rehearse tries to write items, records those that the cluster would refuse,
// and tells whether there are any.
func (r *run) rehearse(ctx context.Context, items []int) (refused bool) {
	errs := make([]error, len(items))
	var g errgroup.Group
	g.SetLimit(parallel)
	for n, i := range items {
		g.Go(func() error {
			errs[n] = r.try(ctx, r.plan.items[i])
			return nil
		})
	}
	_ = g.Wait()
	for n, i := range items {
		if errs[n] != nil {
			entry := r.intended(r.plan.items[i])
			r.record(i, outcome{entry: &entry, err: errs[n]})
			refused = true
		}
	}
	return refused
}

// try tries to write one item, and returns why it would fail.
func (r *run) try(ctx context.Context, it item) error {
	if r.plan.deployment.live(it.ref).ScaleCeded {
		it.obj = withoutReplicas(it.obj)
	}
	g := guard{uid: types.UID(r.intended(it).UID)}
	_, err := r.send(ctx, it, g, metav1.DryRunAll)
	if err == nil || tellsNothing(err) {
		return nil
	}
	return r.refusal(ctx, it, g, err)
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
