package render_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/render/rendertest"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// realCluster is what the charts are tested against.
var realCluster = render.Capabilities{KubeVersion: "v1.36.3"}

func chartRequest(t testing.TB, chart string, values map[string]any) render.Request {
	return render.Request{
		Files: rendertest.Chart(t, chart), Bundle: chart, Capabilities: realCluster,
		Options: fleet.BundleDeploymentOptions{
			DefaultNamespace: "apps",
			Helm:             &fleet.HelmOptions{Values: &fleet.GenericMap{Data: values}},
		},
	}
}

func TestRealCharts(t *testing.T) {
	grafana := map[string]any{"grafana": map[string]any{"adminPassword": "secret"}}
	for chart, tt := range map[string]struct {
		values       map[string]any
		objects      int // hooks left out
		hooks        int
		needsCluster string
	}{
		"podinfo":               {objects: 2},
		"ingress-nginx":         {objects: 11, hooks: 7},
		"gatekeeper":            {objects: 30, hooks: 8},
		"base":                  {objects: 17},
		"kyverno":               {objects: 58, hooks: 6},
		"kube-prometheus-stack": {objects: 125, hooks: 7, values: grafana},
		"submariner-k8s-broker": {objects: 9},
	} {
		t.Run(chart, func(t *testing.T) {
			req := chartRequest(t, chart, tt.values)
			first := mustRender(t, render.New(), req)
			second := mustRender(t, render.New(), req)
			if !bytes.Equal(allJSON(first), allJSON(second)) {
				t.Error("two renders differ")
			}
			if len(first.Objects) != tt.objects || len(first.Hooks) != tt.hooks {
				t.Errorf("%d objects and %d hooks, want %d and %d: %v", len(first.Objects), len(first.Hooks), tt.objects, tt.hooks, first.Hooks)
			}
			if !strings.Contains(first.NeedsCluster, tt.needsCluster) || (tt.needsCluster == "") != (first.NeedsCluster == "") {
				t.Errorf("needs cluster: %q, want %q", first.NeedsCluster, tt.needsCluster)
			}
			t.Logf("asked %v, unknown scope %v, warnings %v", first.Asked, first.UnknownScope, first.Warnings)
		})
	}
}

func TestChartThatNeedsValues(t *testing.T) {
	_, err := render.New().Render(context.Background(), chartRequest(t, "submariner-operator", nil))
	if err == nil {
		t.Fatal("want an error")
	}
	t.Log(err)
}

func mustRender(t testing.TB, r render.Renderer, req render.Request) *render.Result {
	t.Helper()
	result, err := r.Render(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func allJSON(result *render.Result) []byte {
	var all bytes.Buffer
	for _, object := range result.Objects {
		all.Write(object.JSON)
		all.WriteByte('\n')
	}
	return all.Bytes()
}

func BenchmarkKubePrometheusStack(b *testing.B) {
	req := chartRequest(b, "kube-prometheus-stack", map[string]any{"grafana": map[string]any{"adminPassword": "secret"}})
	req.SourceDigest = render.FilesDigest(req.Files)
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			mustRender(b, render.New(), req)
		}
	})
	b.Run("again", func(b *testing.B) {
		renderer := render.New()
		mustRender(b, renderer, req)
		for b.Loop() {
			mustRender(b, renderer, req)
		}
	})
}
