package pipeline_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/pipeline"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/render/rendertest"
	"github.com/flotilla-sh/flotilla/internal/source"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func TestWhereABundleIsRendered(t *testing.T) {
	from := []fleet.ValuesFrom{{ConfigMapKeyRef: &fleet.ConfigMapKeySelector{}}}
	for name, tt := range map[string]struct {
		needs   string
		most    int
		change  func(*pipeline.Input)
		source  bool
		renders int64
		warning string
	}{
		"on the hub":           {renders: 1},
		"asked for":            {source: true, change: func(in *pipeline.Input) { in.Bundle.Spec.Render = fleet.RenderAgent }},
		"values there":         {source: true, change: func(in *pipeline.Input) { in.Bundle.Spec.Helm.ValuesFrom = from }},
		"a lookup":             {source: true, needs: "looks up Secret x", renders: 1, warning: "each cluster renders this for itself: looks up Secret x"},
		"too many renders":     {source: true, most: 1, warning: "it has 2 different renders, and the hub makes at most 1"},
		"as many as there may": {most: 2, renders: 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := &counter{needs: tt.needs}
			s := stages(c)
			s.MaxRenders = tt.most
			in := input(cluster("a", "v1.36.1", "x"))
			if tt.most > 0 {
				in = input(cluster("a", "v1.36.1", "x"), cluster("b", "v1.36.1", "y"))
				tt.renders *= 2
			}
			if tt.change != nil {
				tt.change(&in)
			}
			outcomes := run(t, s, in)
			out := outcomes[0]
			if out.Err != nil || out.Desired.Content.Source != tt.source || out.Encoded == nil || c.renders.Load() != tt.renders {
				t.Fatalf("%d renders, %+v", c.renders.Load(), out)
			}
			if all, _ := pipeline.Warnings(outcomes); !strings.Contains(strings.Join(all, "\n"), tt.warning) {
				t.Errorf("warnings %q, want %q", all, tt.warning)
			}

			// A restarted hub renders nothing and changes nothing.
			in.Remembered = map[string]pipeline.Remembered{}
			for _, o := range outcomes {
				in.Remembered[o.Desired.Namespace] = pipeline.Remembered{Input: o.Desired.RenderInput, Asked: o.Desired.RenderAsked, Content: o.Desired.Content}
			}
			again := &counter{needs: tt.needs}
			s = stages(again)
			s.MaxRenders = tt.most
			for i, o := range run(t, s, in) {
				if o.Encoded != nil || again.renders.Load() > 0 || o.Desired.Content != outcomes[i].Desired.Content {
					t.Errorf("after a restart: %d renders, %+v", again.renders.Load(), o.Desired)
				}
			}
		})
	}
}

func TestTheSourceNamesWhatMattersAlone(t *testing.T) {
	content := func(change func(*pipeline.Input)) string {
		in := input(cluster("a", "v1.36.1", "x"))
		in.Bundle.Spec.Render = fleet.RenderAgent
		change(&in)
		return run(t, stages(&counter{}), in)[0].Desired.Content.Digest
	}
	same := content(func(*pipeline.Input) {})
	for name, change := range map[string]func(*pipeline.Input){
		"a commit":        func(in *pipeline.Input) { in.Commit = "other" },
		"another version": func(in *pipeline.Input) { in.Clusters[0].Capabilities.KubeVersion = "v1.37.0" },
		"drift settings":  func(in *pipeline.Input) { in.Bundle.Spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true} },
	} {
		if content(change) != same {
			t.Errorf("%s changes the source", name)
		}
	}
	if content(func(in *pipeline.Input) { in.Clusters[0].Labels = map[string]string{"text": "y"} }) == same {
		t.Error("other values do not change the source")
	}
}

func TestManyRendersMoveToAgentsAndBackWithSlack(t *testing.T) {
	clusters := func(n int) (out []pipeline.Cluster) {
		for i := range n {
			out = append(out, cluster(fmt.Sprintf("c%02d", i), "v1.36.1", fmt.Sprint(i)))
		}
		return out
	}
	s := stages(&counter{})
	s.MaxRenders = 10
	remembered := map[string]pipeline.Remembered{}
	for _, tt := range []struct {
		clusters int
		source   bool
	}{{10, false}, {11, true}, {10, true}, {9, true}, {8, false}, {10, false}} {
		in := input(clusters(tt.clusters)...)
		in.Remembered = remembered
		outcomes := run(t, s, in)
		clear(remembered)
		for _, o := range outcomes {
			remembered[o.Desired.Namespace] = pipeline.Remembered{Input: o.Desired.RenderInput, Asked: o.Desired.RenderAsked, Content: o.Desired.Content}
		}
		if outcomes[0].Desired.Content.Source != tt.source {
			t.Errorf("%d clusters: agents render: %v", tt.clusters, !tt.source)
		}
	}
}

func TestPlainYAMLIsFilledInForEachCluster(t *testing.T) {
	s := &pipeline.Stages{Renderer: render.NewMemo(render.New(), 1<<20), Key: content.Key("0123456789abcdef")}
	in := input(cluster("a", "v1.36.0", "x"), cluster("b", "v1.36.0", "x"), cluster("c", "v1.36.0", "y"), cluster("d", "v1.36.0", "z"))
	delete(in.Clusters[3].Labels, "text")
	in.Bundle.Spec.Helm = nil
	in.Bundle.Spec.TemplateManifests = true
	in.Files = rendertest.Files("-- a.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  text: ${ .ClusterLabels.text }\n")
	in.SourceDigest = source.Digest(in.Files)
	for _, mode := range []fleet.RenderMode{fleet.RenderAuto, fleet.RenderAgent} {
		in.Bundle.Spec.Render = mode
		in.Remembered = nil
		out := run(t, s, in)
		a, b, c, d := out[0], out[1], out[2], out[3]
		if mode == fleet.RenderAgent {
			// Agents get all that is known of their own cluster.
			if a.Err != nil || a.Desired.RenderInput == b.Desired.RenderInput || a.Desired.Content.Digest == b.Desired.Content.Digest {
				t.Errorf("agent: %+v, %+v", a, b)
			}
		} else if a.Err != nil || a.Desired.Content != b.Desired.Content || a.Desired.Content == c.Desired.Content {
			t.Errorf("hub: %+v, %+v, %+v", a, b, c)
		} else if d.Err == nil || !strings.Contains(d.Err.Error(), `a.yaml:5: ConfigMap a: data.text: "${ .ClusterLabels.text }": the cluster has no label "text"`) {
			t.Errorf("got %v", d.Err)
		}
		// Nothing is rendered again before what templates read has changed.
		in.Remembered = map[string]pipeline.Remembered{}
		for _, o := range out {
			in.Remembered[o.Desired.Namespace] = pipeline.Remembered{Input: o.Desired.RenderInput, Asked: o.Desired.RenderAsked, Content: o.Desired.Content}
		}
		if again := run(t, s, in); again[0].Encoded != nil || again[0].Err != nil {
			t.Errorf("%s: %+v", mode, again[0])
		}
		in.Clusters[0].Labels = map[string]string{"text": "new"}
		if again := run(t, s, in); again[0].Encoded == nil {
			t.Errorf("%s: a changed label changes nothing", mode)
		}
		in.Clusters[0].Labels = map[string]string{"text": "x"}
	}
}

// A preview shows what the cluster would make, and changes nothing else.
func TestPreview(t *testing.T) {
	from := []fleet.ValuesFrom{{ConfigMapKeyRef: &fleet.ConfigMapKeySelector{}}}
	for name, tt := range map[string]struct {
		needs, text string
		change      func(*fleet.BundleSpec)
		shown       bool
		says, held  string
	}{
		"on the hub":    {shown: true},
		"a lookup":      {needs: "looks up Secret x", shown: true, says: "looks up Secret x"},
		"asked for":     {change: func(s *fleet.BundleSpec) { s.Render = fleet.RenderAgent }, shown: true, says: "render: agent asks for that"},
		"values there":  {change: func(s *fleet.BundleSpec) { s.Helm.ValuesFrom = from }, shown: true, says: "helm.valuesFrom is read on the cluster"},
		"cannot be had": {text: "bad", change: func(s *fleet.BundleSpec) { s.Helm.ValuesFrom = from }, says: "without that it cannot be rendered: templates/a.yaml:3: boom"},
		"held":          {change: func(s *fleet.BundleSpec) { s.AllowedTargetNamespaceSelector = &metav1.LabelSelector{} }, shown: true, held: "allowedTargetNamespaceSelector"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(cluster("a", "v1.36.1", cmp.Or(tt.text, "x")))
			if tt.change != nil {
				tt.change(&in.Bundle.Spec)
			}
			asked := run(t, stages(&counter{needs: tt.needs}), in)[0]
			in.Preview = true
			out := run(t, stages(&counter{needs: tt.needs}), in)[0]
			if out.Err != nil || (out.Result != nil) != tt.shown || !strings.Contains(out.Preview, tt.says) || (out.Preview != "") != (tt.says != "") {
				t.Errorf("got %+v", out)
			}
			if !strings.Contains(out.Held, tt.held) || (asked.Err != nil) != (tt.held != "") {
				t.Errorf("held %q, want %q; without a preview: %v", out.Held, tt.held, asked.Err)
			}
			if asked.Err == nil && (asked.Desired.Content != out.Desired.Content || asked.Desired.RenderInput != out.Desired.RenderInput) {
				t.Errorf("it deploys %+v, and without a preview %+v", out.Desired, asked.Desired)
			}
		})
	}
}
