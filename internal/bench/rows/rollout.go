package rows

import (
	"context"
	"fmt"
	"time"

	"github.com/flotilla-sh/flotilla/internal/bench/report"
	"github.com/flotilla-sh/flotilla/internal/bench/stage"
)

// rollout is a number of bundles, each for some of the clusters of a fleet.
type rollout struct {
	clusters int
	bundles  []stage.Bundle
	// each is the number of clusters of one bundle; zero is all.
	each int
	// payload fills the bundles; nil is one small object.
	payload func(name, value string) map[string]string
	goals   goals
}

// want is what all Ready means.
func (o rollout) want() stage.Want {
	each := o.each
	if each == 0 {
		each = o.clusters
	}
	want := stage.Want{}
	for _, b := range o.bundles {
		want[b.Name] = each
	}
	return want
}

// filled returns a bundle with files that differ by value.
func (o rollout) filled(b stage.Bundle, value string) stage.Bundle {
	if o.payload == nil {
		b.Files = map[string]string{"configmap.yaml": stage.ConfigMap(b.Name, value)}
		return b
	}
	b.Files = o.payload(b.Name, value)
	return b
}

// small is one of several bundles.
func small(name string, i int) stage.Bundle {
	return stage.Bundle{Name: fmt.Sprintf("%s-%03d", name, i)}
}

// rollouts measures the creation of bundles and a change of each on a fleet of
// its own.
func (r *Run) rollouts(ctx context.Context, o rollout) error {
	s, raw, err := r.fleet(ctx, o.clusters)
	if err != nil {
		return err
	}
	defer func() { _ = s.Stop() }()
	if err := r.memory(s, func() error { return r.rollout(ctx, s, raw, o) }); err != nil {
		return err
	}
	o.goals.mark(r.Figures)
	return nil
}

// rollout measures the creation of bundles and a change of each.
func (r *Run) rollout(ctx context.Context, s *stage.Stage, raw stage.Raw, o rollout) error {
	pairs := float64(len(o.bundles) * o.want()[o.bundles[0].Name])
	for _, phase := range []struct {
		name, value string
		act         func(context.Context, stage.Bundle) error
		floor       time.Duration
	}{
		{"create", "one", s.Create, raw.Pairs(pairs)},
		{"update", "two", s.Update, raw.Updates(pairs)},
	} {
		r.Log("%s %d bundles: %.0f deployments", phase.name, len(o.bundles), pairs)
		profiled := s.Profile(ctx, phase.name)
		took, use, err := s.Cost(ctx, func(ctx context.Context) (time.Time, error) {
			for _, b := range o.bundles {
				if err := phase.act(ctx, o.filled(b, phase.value)); err != nil {
					return time.Time{}, err
				}
			}
			return s.AwaitReady(ctx, o.want())
		})
		if err != nil {
			return err
		}
		if err := profiled(); err != nil {
			return err
		}
		r.phase(phase.name, use)
		r.record(report.Figure{Name: phase.name + " → all Ready", Unit: "s", Value: took.Seconds(), Floor: phase.floor.Seconds()})
		r.createRate(phase.name, use, raw)
		r.costs(phase.name, pairs, use, raw)
	}
	return nil
}
