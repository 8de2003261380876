package rows

import (
	"context"
	"fmt"
)

// sizes are the fleets of the row slope.
var sizes = []int{100, 300, 1000, 3000}

// flat are the figures that must not grow with the fleet.
var flat = map[string]bool{
	"create → all Ready": true, "create: requests per deployment": true, "update: requests per deployment": true,
	"create: etcd puts per deployment": true, "update: etcd puts per deployment": true,
	"create: CPU per 1,000 deployments": true, "update: CPU per 1,000 deployments": true, "hub peak memory, anonymous": true,
}

var slope = Row{
	Name: "slope", N: 3000, Repeats: 1,
	Title: "one bundle on 100, 300, 1,000 and 3,000 clusters, as far as N",
	measure: func(ctx context.Context, r *Run) error {
		for _, n := range sizes {
			if n > r.N {
				break
			}
			part := &Run{Options: r.Options, N: n}
			if err := deploy.measure(ctx, part); err != nil {
				return fmt.Errorf("%d clusters: %w", n, err)
			}
			for _, f := range part.Figures {
				if flat[f.Name] {
					f.Name = fmt.Sprintf("%d clusters: %s", n, f.Name)
					f.Goal, f.Peer = "", ""
					r.record(f)
				}
			}
		}
		return nil
	},
}
