package rows

import (
	"github.com/flotilla-sh/flotilla/internal/bench/meter"
	"github.com/flotilla-sh/flotilla/internal/bench/report"
	"github.com/flotilla-sh/flotilla/internal/bench/stage"
)

// costs records what a phase has cost for each of its pairs of bundle and
// cluster.
func (r *Run) costs(phase string, n float64, use meter.Use, raw stage.Raw) {
	requests := use.Requests.Sum(meter.Request.Work)
	thousand := func(name string) float64 { return use.CPU[name].Seconds() / n * 1000 }
	for _, f := range []report.Figure{
		{Name: "requests per deployment", Value: float64(requests) / n, Floor: 2, Exact: true},
		{Name: "of them by the hub", Value: float64(use.Requests.Sum(byHub)) / n, Floor: 1, Exact: true},
		{Name: "of them roll-ups", Value: float64(use.Requests.Sum(rollUp)) / n, Exact: true},
		{Name: "etcd puts per deployment", Value: use.PutsOfWork() / n, Floor: raw.Puts, Exact: true},
		{Name: "of them for roll-ups", Value: float64(use.Requests.Sum(rolledUp)) / n, Exact: true},
		{Name: "etcd log per deployment", Unit: "kB", Value: use.Etcd.LogBytes / n / 1000, Floor: raw.LogBytes / 1000},
		{Name: "etcd live data per deployment", Unit: "kB", Value: use.Etcd.LiveBytes / n / 1000, Floor: raw.LiveBytes / 1000},
		{Name: "CPU per 1,000 deployments", Unit: "s", Floor: raw.CPU.Seconds() * 1000,
			Value: thousand(meter.Hub) + thousand(meter.APIServer) + thousand(meter.Etcd)},
		{Name: "of it the hub", Unit: "s", Value: thousand(meter.Hub)},
		{Name: "of it the API server", Unit: "s", Value: thousand(meter.APIServer)},
		{Name: "of it etcd", Unit: "s", Value: thousand(meter.Etcd)},
		{Name: "beside it the simulator", Unit: "s", Value: thousand(meter.Simulator)},
	} {
		f.Name = phase + ": " + f.Name
		r.record(f)
	}
}

func byHub(r meter.Request) bool { return r.Work() && r.Agent == meter.HubAgent }

// rollUp tells whether the hub sums something up: how often it does depends a
// little on how fast the machine is.
func rollUp(r meter.Request) bool {
	switch r.Resource {
	case "bundles/status", "clusters/status", "gitrepos/status", "clustergroups/status":
		return byHub(r) && r.IsWrite()
	}
	return false
}

func rolledUp(r meter.Request) bool { return rollUp(r) && r.OK }

// memory records how much memory the hub takes at most meanwhile.
func (r *Run) memory(s *stage.Stage, during func() error) error {
	memory, err := meter.WatchMemory(s.HubPID())
	if err != nil {
		return err
	}
	if err := during(); err != nil {
		return err
	}
	peak, err := memory.Stop()
	if err != nil {
		return err
	}
	r.record(report.Figure{Name: "hub peak memory, anonymous", Unit: "MB", Value: float64(peak.Anonymous) / 1e6})
	r.record(report.Figure{Name: "hub peak memory, resident", Unit: "MB", Value: float64(peak.Resident) / 1e6})
	r.record(report.Figure{Name: "beside it its render workers", Unit: "MB", Value: float64(peak.Children) / 1e6})
	return nil
}
