package rows

import (
	"context"
	"errors"
	"time"

	"github.com/flotilla-sh/flotilla/internal/bench/meter"
	"github.com/flotilla-sh/flotilla/internal/bench/report"
	"github.com/flotilla-sh/flotilla/internal/bench/sim"
	"github.com/flotilla-sh/flotilla/internal/bench/stage"
)

// deployed is a fleet on which one bundle runs, at rest.
func (r *Run) deployed(ctx context.Context) (*stage.Stage, error) {
	s, _, err := r.fleet(ctx, r.N)
	if err != nil {
		return nil, err
	}
	o := rollout{clusters: r.N, bundles: many("bundle", 1)}
	err = s.Create(ctx, o.filled(o.bundles[0], "one"))
	if err == nil {
		_, err = s.AwaitReady(ctx, o.want())
	}
	if err == nil {
		err = s.Rest(ctx)
	}
	if err != nil {
		_ = s.Stop()
		return nil, err
	}
	return s, nil
}

var restart = Row{
	Name: "restart", N: 1000,
	Title: "the hub is started again, with N clusters and nothing to do",
	measure: func(ctx context.Context, r *Run) error {
		s, err := r.deployed(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = s.Stop() }()
		if err := s.StopHub(); err != nil {
			return err
		}
		mark, err := s.Meter.Begin(ctx)
		if err != nil {
			return err
		}
		if err := s.StartHub(ctx); err != nil {
			return err
		}
		if err := s.Settle(ctx, mark); err != nil {
			return err
		}
		workers := len(meter.Children(s.HubPID()))
		use, err := s.Meter.End(ctx, mark)
		if err != nil {
			return err
		}
		r.phase("restart", use)
		hub := func(r meter.Request) bool { return r.Agent == meter.HubAgent }
		writes := func(r meter.Request) bool { return hub(r) && r.IsWrite() && !r.Background() }
		for _, f := range []report.Figure{
			{Name: "requests of the hub", Value: float64(use.Requests.Sum(hub)), Goal: "lists and watches", Peer: "5,585", Exact: true},
			{Name: "of them writes", Value: float64(use.Requests.Sum(writes)), Goal: "0", Exact: true},
			{Name: "render workers started", Value: float64(workers), Goal: "0", Exact: true},
			{Name: "CPU of the hub", Unit: "s", Value: use.CPU[meter.Hub].Seconds()},
			{Name: "CPU of the API server", Unit: "s", Value: use.CPU[meter.APIServer].Seconds()},
		} {
			r.record(f)
		}
		return nil
	},
}

var herd = Row{
	Name: "herd", N: 1000,
	Title: "N agents that have lost their state come at once",
	measure: func(ctx context.Context, r *Run) error {
		s, err := r.deployed(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = s.Stop() }()
		s.StopAgents()
		took, use, err := s.Cost(ctx, func(ctx context.Context) (time.Time, error) {
			err := s.StartAgents(ctx, 0)
			return time.Now(), err
		})
		if err != nil {
			return err
		}
		r.phase("return", use)
		n := float64(r.N)
		agents := func(r meter.Request) bool { return r.Agent == meter.FleetAgent }
		refused := func(r meter.Request) bool { return agents(r) && !r.OK }
		for _, f := range []report.Figure{
			{Name: "until all are at rest", Unit: "s", Value: use.Took.Seconds()},
			{Name: "until all were started", Unit: "s", Value: took.Seconds()},
			{Name: "requests of an agent", Value: float64(use.Requests.Sum(agents)) / n, Exact: true},
			{Name: "of them refused", Value: float64(use.Requests.Sum(refused)) / n},
			{Name: "writes of the hub for an agent", Value: float64(use.Requests.Sum(func(r meter.Request) bool { return byHub(r) && r.IsWrite() })) / n, Exact: true},
			{Name: "API server CPU for 1,000 agents", Unit: "s", Value: use.CPU[meter.APIServer].Seconds() / n * 1000},
			{Name: "hub CPU for 1,000 agents", Unit: "s", Value: use.CPU[meter.Hub].Seconds() / n * 1000},
		} {
			r.record(f)
		}
		return nil
	},
}

const (
	// beats is how many heartbeats of each agent are watched.
	beats = 3
	// reckoned are the requests for a cluster in an hour that the window is too
	// short for: its agent's watch is opened again after 8 to 16 minutes, and the
	// hub writes every fifteen that the agent goes on.
	reckoned = 5 + 4
)

var heartbeats = Row{
	Name: "heartbeat", N: 1000, Repeats: 1,
	Title: "N agents with nothing to do, for an hour (reckoned from three minutes)",
	measure: func(ctx context.Context, r *Run) error {
		s, err := r.stage(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = s.Stop() }()
		if err := s.Register(ctx, r.N); err != nil {
			return err
		}
		if err := s.Rest(ctx); err != nil {
			return err
		}
		r.Log("%s without agents", r.Heartbeat)
		without, err := s.During(ctx, r.Heartbeat)
		if err != nil {
			return err
		}
		r.Log("%s of raw heartbeats", r.Heartbeat)
		raw, err := s.RawBeats(ctx, r.N, r.Heartbeat)
		if err != nil {
			return err
		}
		// Started over a whole interval, so that beats are spread as they are
		// in a fleet that has run for a while.
		if err := s.StartAgents(ctx, max(sim.Spread(r.N), r.Heartbeat)); err != nil {
			return err
		}
		if err := s.Rest(ctx); err != nil {
			return err
		}
		r.Log("%s with agents", beats*r.Heartbeat)
		profiled := s.ProfileFor(ctx, "beats", (beats-1)*r.Heartbeat)
		with, err := s.During(ctx, beats*r.Heartbeat)
		if err := errors.Join(err, profiled()); err != nil {
			return err
		}
		r.phase("beats", with)
		n, hour := float64(r.N), time.Hour.Seconds()
		renewals := func(r meter.Request) bool { return r.Agent == meter.FleetAgent && r.Background() }
		above := func(use meter.Use, name string) float64 {
			perSecond := use.CPU[name].Seconds()/use.Took.Seconds() - without.CPU[name].Seconds()/without.Took.Seconds()
			return perSecond * hour / n * 1000
		}
		cost := func(name string) float64 { return above(with, name) }
		for _, f := range []report.Figure{
			{Name: "requests per cluster and hour", Goal: "≤ 70", Peer: "128", Floor: 61,
				Value: float64(with.Requests.Sum(renewals))/n*hour/with.Took.Seconds() + reckoned},
			{Name: "CPU per cluster and hour", Unit: "ms", Goal: "≤ 200", Peer: "760", Floor: above(raw, meter.APIServer) + above(raw, meter.Etcd),
				Value: cost(meter.Hub) + cost(meter.APIServer) + cost(meter.Etcd)},
			{Name: "of it the hub", Unit: "ms", Value: cost(meter.Hub)},
			{Name: "of it the API server", Unit: "ms", Value: cost(meter.APIServer)},
			{Name: "of it etcd", Unit: "ms", Value: cost(meter.Etcd)},
		} {
			r.record(f)
		}
		return nil
	},
}
