package render_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/render/rendertest"
	"github.com/flotilla-sh/flotilla/internal/source"
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
		values map[string]any
		total  int // of "helm template --include-crds"
		hooks  int
		tests  int // hooks that are tests, which are left out
		warns  string
	}{
		"podinfo":               {total: 5, tests: 3},
		"ingress-nginx":         {total: 18, hooks: 7},
		"gatekeeper":            {total: 38, hooks: 8},
		"base":                  {total: 17},
		"kyverno":               {total: 69, hooks: 6, tests: 5, warns: "templates/validate.yaml:36: it looks up apps/v1 Deployment"},
		"kube-prometheus-stack": {total: 132, hooks: 7, values: grafana},
		"submariner-k8s-broker": {total: 9},
	} {
		t.Run(chart, func(t *testing.T) {
			req := chartRequest(t, chart, tt.values)
			first := mustRender(t, render.New(), req)
			second := mustRender(t, render.New(), req)
			if !bytes.Equal(allJSON(first), allJSON(second)) {
				t.Error("two renders differ")
			}
			hooks := slices.DeleteFunc(slices.Clone(first.Objects), func(o render.Object) bool { return !bytes.Contains(o.JSON, []byte(`"helm.sh/hook":`)) })
			if len(first.Objects) != tt.total-tt.tests || len(hooks) != tt.hooks {
				t.Errorf("%d objects of %d, %d of them hooks", len(first.Objects), tt.total, len(hooks))
			}
			if first.NeedsCluster != "" || len(first.UnknownScope) > 0 {
				t.Errorf("needs cluster: %q, unknown scope: %v", first.NeedsCluster, first.UnknownScope)
			}
			if warnings := texts(first.Warnings); !strings.Contains(warnings, tt.warns) || (tt.warns == "") != (warnings == "") {
				t.Errorf("warnings: %q, want %q", warnings, tt.warns)
			}
		})
	}
}

func TestChartThatNeedsValues(t *testing.T) {
	_, err := render.New().Render(context.Background(), chartRequest(t, "submariner-operator", nil))
	const want = `templates/operator-deployment.yaml:45: this is not YAML: mapping values are not allowed in this context (near "image: quay.io/submariner/submariner-operator:"), in line 45 of what it renders to: correct the template, or the values that it uses`
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func mustRender(t testing.TB, r render.Renderer, req render.Request) *render.Result {
	t.Helper()
	result, err := r.Render(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// texts writes notes one a line.
func texts(notes []fault.Note) string {
	lines := make([]string, len(notes))
	for i, n := range notes {
		lines[i] = n.String()
	}
	return strings.Join(lines, "\n")
}

func allJSON(result *render.Result) []byte {
	var all bytes.Buffer
	for _, object := range result.Objects {
		all.Write(object.JSON)
		all.WriteByte('\n')
	}
	return all.Bytes()
}

func TestChartThatMakesUpASecretNeedsTheCluster(t *testing.T) {
	result := mustRender(t, render.New(), chartRequest(t, "kube-prometheus-stack", nil))
	t.Log(result.NeedsCluster)
	if !strings.Contains(result.NeedsCluster, "charts/grafana/templates/") {
		t.Errorf("needs cluster: %q, want grafana's secret", result.NeedsCluster)
	}
}

func BenchmarkKubePrometheusStack(b *testing.B) {
	req := chartRequest(b, "kube-prometheus-stack", map[string]any{"grafana": map[string]any{"adminPassword": "secret"}})
	req.SourceDigest = source.Digest(req.Files)
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
