package rows

import (
	"context"
	"time"

	"github.com/flotilla-sh/flotilla/internal/bench/meter"
	"github.com/flotilla-sh/flotilla/internal/bench/report"
	"github.com/flotilla-sh/flotilla/internal/bench/stage"
)

var deploy = Row{
	Name: "deploy", N: 1000,
	Title:   "one bundle of one object on N clusters, created and then changed",
	measure: func(ctx context.Context, r *Run) error { return r.rollout(ctx, rollout{clusters: r.N, bundles: 1}) },
}

// rollout is a number of bundles that each go to some of the clusters.
type rollout struct {
	clusters, bundles int
}

// rollout measures the creation of bundles and a change of each.
func (r *Run) rollout(ctx context.Context, o rollout) error {
	s, raw, err := r.fleet(ctx, o.clusters)
	if err != nil {
		return err
	}
	defer func() { _ = s.Stop() }()
	memory, err := meter.WatchMemory(s.HubPID())
	if err != nil {
		return err
	}
	pairs := o.bundles * o.clusters
	for _, phase := range []struct {
		name, value string
		act         func(context.Context, stage.Bundle) error
		floor       time.Duration
	}{
		{"create", "one", s.Create, raw.Pairs(pairs)},
		{"update", "two", s.Update, raw.Updates(pairs)},
	} {
		r.Log("%s of %d bundles on %d clusters", phase.name, o.bundles, o.clusters)
		took, use, err := s.Cost(ctx, func(ctx context.Context) (time.Time, error) {
			for i := range o.bundles {
				if err := phase.act(ctx, numbered(i, phase.value)); err != nil {
					return time.Time{}, err
				}
			}
			return s.AwaitReady(ctx, o.bundles, o.clusters)
		})
		if err != nil {
			return err
		}
		r.phase(phase.name, use)
		r.record(report.Figure{Name: phase.name + " → all Ready", Unit: "s", Value: took.Seconds(), Floor: phase.floor.Seconds()})
		r.costs(phase.name, pairs, use, raw)
	}
	peak, err := memory.Stop()
	if err != nil {
		return err
	}
	r.memory(peak)
	return nil
}

// numbered is one of several small bundles.
func numbered(i int, value string) stage.Bundle {
	name := bundleName(i)
	return stage.Bundle{Name: name, Files: map[string]string{"configmap.yaml": stage.ConfigMap(name, value)}}
}
