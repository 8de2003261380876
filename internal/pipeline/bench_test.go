package pipeline_test

import (
	"fmt"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/pipeline"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/render/rendertest"
	"github.com/flotilla-sh/flotilla/internal/source"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// BenchmarkCommit takes a chart with other values for each of 100 clusters
// through all stages, in this process: what a commit costs the hub beside the
// API server. Each round has values of its own.
func BenchmarkCommit(b *testing.B) {
	for _, name := range []string{"podinfo", "kube-prometheus-stack"} {
		b.Run(name, func(b *testing.B) {
			files := rendertest.Chart(b, name)
			s := &pipeline.Stages{Renderer: render.NewMemo(render.New(), 64<<20), Key: content.Key("0123456789abcdef")}
			in := input()
			in.Files, in.SourceDigest = files, source.Digest(files)
			for i := range 100 {
				c := cluster(fmt.Sprintf("c%d", i), "v1.36.3", fmt.Sprintf("n%d", i))
				c.Capabilities.APIs = manyAPIs()
				in.Clusters = append(in.Clusters, c)
			}
			for round := 0; b.Loop(); round++ {
				in.Bundle.Spec.Helm = &fleet.HelmOptions{Values: &fleet.GenericMap{Data: map[string]any{
					"nameOverride": "${ .ClusterLabels.text }", "grafana": map[string]any{"adminPassword": "secret"}, "round": fmt.Sprint(round),
				}}}
				in.Bundle.Spec.Render = fleet.RenderHub
				outcomes, err := s.Run(b.Context(), in)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := pipeline.Errors(outcomes); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/100, "µs/cluster")
		})
	}
}

// manyAPIs is as much as a cluster with some operators serves.
func manyAPIs() []render.API {
	var apis []render.API
	for i := range 250 {
		apis = append(apis, render.API{GroupVersion: fmt.Sprintf("group%d.example.com/v1", i/4), Kind: fmt.Sprintf("Kind%d", i), Namespaced: true})
	}
	return apis
}
