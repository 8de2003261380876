package rows

import (
	"context"

	"github.com/flotilla-sh/flotilla/internal/bench/meter"
	"github.com/flotilla-sh/flotilla/internal/bench/report"
	"github.com/flotilla-sh/flotilla/internal/bench/stage"
)

// createDeployment is the request whose rate is compared with the raw one.
var createDeployment = meter.Request{Agent: meter.HubAgent, Verb: "create", Resource: "bundledeployments", OK: true}

var fanout = Row{
	Name: "fanout10", N: 1000, Repeats: 1,
	Title: "ten bundles on each of N clusters, created and then changed",
	measure: func(ctx context.Context, r *Run) error {
		return r.rollouts(ctx, rollout{clusters: r.N, bundles: many("bundle", 10), goals: goals{
			"create: requests per deployment":   {goal: "≤ 3.3"},
			"update: requests per deployment":   {goal: "≤ 3.3"},
			"create: etcd puts per deployment":  {goal: "≤ 2.3"},
			"update: etcd puts per deployment":  {goal: "≤ 2.3"},
			"create: etcd log per deployment":   {goal: "≤ 4"},
			"update: etcd log per deployment":   {goal: "≤ 4"},
			"create: CPU per 1,000 deployments": {goal: "≤ 8", peer: "98"},
			"update: CPU per 1,000 deployments": {goal: "≤ 8", peer: "98"},
			"create: of it the hub":             {goal: "≤ 1.5"},
			"update: of it the hub":             {goal: "≤ 1.5"},
			"create: deployments created":       {goal: "≥ 50 % of raw", peer: "18.9"},
			"hub peak memory, anonymous":        {peer: "607", goal: "≤ 150 (10,000 deployments)"},
		}})
	},
}

var matrix = Row{
	Name: "matrix", N: 50,
	Title: "N bundles on each of N clusters, created and then changed",
	measure: func(ctx context.Context, r *Run) error {
		return r.rollouts(ctx, rollout{clusters: r.N, bundles: many("bundle", r.N), goals: goals{
			"create → all Ready": {goal: "≤ 9", peer: "78.9"},
		}})
	},
}

// createRate records how fast the hub creates deployments, beside what the API
// server can do for a client that only creates.
func (r *Run) createRate(phase string, use meter.Use, raw stage.Raw) {
	span := use.Spans[createDeployment]
	seconds := span.Last.Sub(span.First).Seconds()
	if n := use.Requests[createDeployment]; n > 1 && seconds > 0 {
		r.record(report.Figure{Name: phase + ": deployments created", Unit: "/s", Value: float64(n) / seconds, Floor: raw.CreateRate})
	}
}
