package rows

import (
	"context"
	"time"

	"github.com/flotilla-sh/flotilla/internal/bench/meter"
	"github.com/flotilla-sh/flotilla/internal/bench/report"
)

var registration = Row{
	Name: "register", N: 1000,
	Title: "N clusters are made at once, without agents",
	measure: func(ctx context.Context, r *Run) error {
		s, err := r.stage(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = s.Stop() }()
		took, use, err := s.Cost(ctx, func(ctx context.Context) (time.Time, error) {
			err := s.Join(ctx, r.N)
			return time.Now(), err
		})
		if err != nil {
			return err
		}
		r.phase("register", use)
		n := float64(r.N)
		for _, f := range []report.Figure{
			{Name: "until all are registered", Unit: "s", Value: took.Seconds()},
			{Name: "clusters registered", Unit: "/s", Value: n / took.Seconds(), Goal: "≥ 60"},
			{Name: "requests of the hub for a cluster", Value: float64(use.Requests.Sum(byHub)) / n, Exact: true},
			{Name: "CPU of the hub for 1,000 clusters", Unit: "s", Value: use.CPU[meter.Hub].Seconds() / n * 1000},
			{Name: "CPU of the API server for 1,000 clusters", Unit: "s", Value: use.CPU[meter.APIServer].Seconds() / n * 1000},
		} {
			r.record(f)
		}
		return nil
	},
}
