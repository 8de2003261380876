package helm_test

import (
	"context"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/render/rendertest"
	"github.com/flotilla-sh/flotilla/internal/source"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// BenchmarkAgainstThePlainEngine renders one chart with other values each
// time, through Helm's own functions and through this project, on which the
// cost of one commit to a large fleet depends.
func BenchmarkAgainstThePlainEngine(b *testing.B) {
	for _, name := range []string{"podinfo", "kube-prometheus-stack"} {
		files := rendertest.Chart(b, name)
		b.Run(name+"/plain", func(b *testing.B) {
			c := load(b, files)
			for i := 0; b.Loop(); i++ {
				plain(b, c, clusterValues(i))
			}
		})
		b.Run(name+"/ours", func(b *testing.B) {
			renderer := render.New()
			req := render.Request{Files: files, SourceDigest: source.Digest(files), Bundle: name, Capabilities: render.Capabilities{KubeVersion: "v1.36.3"}}
			ours(b, renderer, req, 0)
			for i := 1; b.Loop(); i++ {
				ours(b, renderer, req, i)
			}
		})
	}
}

func clusterValues(i int) map[string]any {
	return map[string]any{"grafana": map[string]any{"adminPassword": "secret"}, "cluster": float64(i), "replicaCount": float64(1 + i%9)}
}

func ours(b *testing.B, renderer render.Renderer, req render.Request, i int) {
	req.Options.Helm = &fleet.HelmOptions{Values: &fleet.GenericMap{Data: clusterValues(i)}}
	if _, err := renderer.Render(context.Background(), req); err != nil {
		b.Fatal(err)
	}
}

func load(b *testing.B, files []source.File) *chart.Chart {
	var buffered []*loader.BufferedFile
	for _, file := range files {
		buffered = append(buffered, &loader.BufferedFile{Name: file.Path, Data: file.Data})
	}
	c, err := loader.LoadFiles(buffered)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func plain(b *testing.B, c *chart.Chart, values map[string]any) {
	if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
		b.Fatal(err)
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.36.3", Major: "1", Minor: "36"}
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: "web"}, capabilities)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := engine.Render(c, all); err != nil {
		b.Fatal(err)
	}
}
