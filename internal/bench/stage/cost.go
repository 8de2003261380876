package stage

import (
	"context"
	"time"

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
