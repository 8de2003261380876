package rows

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-sh/flotilla/internal/bench/report"
	"github.com/flotilla-sh/flotilla/internal/status"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// boardBundles is the number of bundles on each cluster of the row board.
const boardBundles = 20

var board = Row{
	Name: "board", N: 10_000,
	Title: "the sums of N clusters with 20 bundles each, in memory",
	measure: func(ctx context.Context, r *Run) error {
		before := heap()
		b := status.NewBoard()
		pairs := float64(r.N * boardBundles)
		filled, err := fill(ctx, b, r.N, false)
		if err != nil {
			return err
		}
		grown := heap() - before
		changed, err := fill(ctx, b, r.N, true)
		if err != nil {
			return err
		}
		began := time.Now()
		for i := range boardBundles {
			b.Bundle(bundleOf(i))
		}
		read := time.Since(began)
		runtime.KeepAlive(b)
		for _, f := range []report.Figure{
			{Name: "memory of a deployment", Unit: "B", Value: float64(grown) / pairs},
			{Name: "a new deployment", Unit: "µs", Value: micros(filled) / pairs},
			{Name: "a changed deployment", Unit: "µs", Value: micros(changed) / pairs},
			{Name: "the sum of a bundle", Unit: "µs", Value: micros(read) / boardBundles},
		} {
			r.record(f)
		}
		return nil
	},
}

// bundleOf names a bundle.
func bundleOf(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: fleet.DefaultNamespace, Name: small("bundle", i).Name}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// heap is the memory in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // no heap is as large
}

// fill tells a board of all deployments and returns how long that took.
func fill(ctx context.Context, b *status.Board, clusters int, ready bool) (time.Duration, error) {
	var took time.Duration
	for c := range clusters {
		for i := range boardBundles {
			d := boardDeployment(c, i, ready)
			began := time.Now()
			b.Observe(d)
			took += time.Since(began)
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
	return took, nil
}

// boardDeployment is a deployment with what the board reads.
func boardDeployment(cluster, i int, ready bool) *fleet.BundleDeployment {
	bundle := bundleOf(i)
	name := fmt.Sprintf("cluster-%05d", cluster)
	d := &fleet.BundleDeployment{}
	d.Namespace, d.Name = "cluster-"+name, bundle.Name
	d.Labels = map[string]string{
		fleet.BundleNamespaceLabel: bundle.Namespace, fleet.BundleLabel: bundle.Name,
		fleet.ClusterNamespaceLabel: fleet.DefaultNamespace, fleet.ClusterLabel: name,
	}
	d.Spec.DeploymentID = "wanted"
	if ready {
		d.Status.AppliedDeploymentID, d.Status.Ready, d.Status.NonModified = "wanted", true, true
		d.Status.ResourceCounts = fleet.ResourceCounts{Ready: 10, DesiredReady: 10}
	}
	return d
}
