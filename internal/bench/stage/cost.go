package stage

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flotilla-sh/flotilla/internal/bench/meter"
)

// Cost does something and returns how long it took, and what it has cost until
// hub and agents were at rest again.
func (s *Stage) Cost(ctx context.Context, do func(context.Context) (time.Time, error)) (time.Duration, meter.Use, error) {
	mark, err := s.Meter.Begin(ctx)
	if err != nil {
		return 0, meter.Use{}, err
	}
	began := time.Now()
	done, err := do(ctx)
	if err != nil {
		return 0, meter.Use{}, err
	}
	if err := s.Rest(ctx); err != nil {
		return 0, meter.Use{}, err
	}
	use, err := s.Meter.End(ctx, mark)
	return done.Sub(began), use, err
}

// During returns what a time has cost in which the bench does nothing.
func (s *Stage) During(ctx context.Context, d time.Duration) (meter.Use, error) {
	return s.Paced(ctx, d, 1, func(int) error { return nil })
}

// Paced returns what a time has cost in which something is done n times, evenly
// spread.
func (s *Stage) Paced(ctx context.Context, d time.Duration, n int, do func(i int) error) (meter.Use, error) {
	mark, err := s.Meter.Begin(ctx)
	if err != nil {
		return meter.Use{}, err
	}
	tick := time.NewTicker(d / time.Duration(n))
	defer tick.Stop()
	var group errgroup.Group
	for i := range n {
		select {
		case <-ctx.Done():
			return meter.Use{}, errors.Join(context.Cause(ctx), group.Wait())
		case <-tick.C:
		}
		group.Go(func() error { return do(i) })
	}
	if err := group.Wait(); err != nil {
		return meter.Use{}, err
	}
	return s.Meter.End(ctx, mark)
}

// settleTime is how long a hub that was started again may think before its
// first request and between two.
const settleTime = 5 * time.Second

// Settle waits until the hub has asked for something since a mark, and then for
// nothing more.
func (s *Stage) Settle(ctx context.Context, mark meter.Mark) error {
	ctx, cancel := within(ctx, "the hub settles")
	defer cancel()
	hub := func(r meter.Request) bool { return r.Agent == meter.HubAgent && !r.Background() }
	for {
		n, err := s.Meter.CountSince(mark, hub)
		if err != nil {
			return err
		}
		if n > 0 {
			return s.Meter.Quiet(ctx, settleTime, hub)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
