package rows

import (
	"context"

	"github.com/flotilla-sh/flotilla/internal/bench/report"
	"github.com/flotilla-sh/flotilla/internal/bench/stage"
)

var deploy = Row{
	Name: "deploy", N: 1000,
	Title: "one bundle of one object on N clusters, created and then changed",
	measure: func(ctx context.Context, r *Run) error {
		return r.rollouts(ctx, rollout{clusters: r.N, bundles: many("bundle", 1), goals: goals{
			"create → all Ready":                {goal: "≤ 6", peer: "57.7"},
			"update → all Ready":                {goal: "≤ 6", peer: "44.2"},
			"create: requests per deployment":   {goal: "≤ 4.2", peer: "23.5"},
			"update: requests per deployment":   {goal: "≤ 4.2", peer: "13.0"},
			"create: etcd puts per deployment":  {goal: "≤ 3.2", peer: "7.0"},
			"update: etcd puts per deployment":  {goal: "≤ 3.2", peer: "7.0"},
			"create: etcd log per deployment":   {goal: "≤ 4", peer: "20.8"},
			"update: etcd log per deployment":   {goal: "≤ 4", peer: "20.8"},
			"create: CPU per 1,000 deployments": {goal: "≤ 8", peer: "98"},
			"update: CPU per 1,000 deployments": {goal: "≤ 8", peer: "98"},
			"create: of it the hub":             {goal: "≤ 1.5"},
			"update: of it the hub":             {goal: "≤ 1.5"},
		}})
	},
}

// goals are what the architecture asks of figures, by their names, and what
// the peer needs.
type goals map[string]struct{ goal, peer string }

// mark puts goals to figures.
func (g goals) mark(figures []report.Figure) {
	for i := range figures {
		f := &figures[i]
		f.Goal, f.Peer = g[f.Name].goal, g[f.Name].peer
	}
}

// many are n small bundles that go to all clusters.
func many(name string, n int) []stage.Bundle {
	out := make([]stage.Bundle, n)
	for i := range out {
		out[i] = small(name, i)
	}
	return out
}
