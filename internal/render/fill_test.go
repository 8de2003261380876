package render_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/render/rendertest"
	"github.com/flotilla-sh/flotilla/internal/templating"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// paris is a cluster, as templates know it.
func paris() *templating.Cluster {
	return &templating.Cluster{
		Namespace: "fleet-default", Name: "paris", Labels: map[string]string{"env": "prod"},
		Annotations: map[string]string{"owner": "me"},
		Values:      map[string]any{"replicas": 3.0, "tolerations": []any{map[string]any{"operator": "Exists"}}, "none": nil},
	}
}

func TestTemplatesInObjects(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\n"
	filled := fleet.BundleDeploymentOptions{TemplateManifests: true}
	for name, s := range map[string]situation{
		"names, labels and text": {
			files: "-- a.yaml --\n" + head + "metadata:\n  name: web-${ .ClusterName }\n  labels: {env: \"${ .ClusterLabels.env }\"}\ndata:\n  ${ .ClusterLabels.env }: of ${ .ClusterAnnotations.owner }\n",
			want:  []string{"ConfigMap default/web-paris"}, contain: `"data":{"prod":"of me"},"kind":"ConfigMap","metadata":{"labels":{"env":"prod"},"name":"web-paris"`,
		},
		"a template alone keeps its type": {
			files: "-- d.yaml --\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  replicas: ${ .ClusterValues.replicas }\n  text: ${ .ClusterValues.replicas }x\n  quoted: ${ .ClusterValues.replicas | toString }\n  half: ${ div .ClusterValues.replicas 2 }\n  tolerations: ${ .ClusterValues.tolerations }\n",
			want:  []string{"Deployment default/d"}, contain: `"spec":{"half":1,"quoted":"3","replicas":3,"text":"3x","tolerations":[{"operator":"Exists"}]}`,
		},
		"namespaces": {
			files: "-- a.yaml --\n" + head + "metadata: {name: a, namespace: \"${ .ClusterLabels.env }\"}\n", want: []string{"ConfigMap prod/a"},
		},
		"an object that is kept as it is": {
			files: "-- a.yaml --\n" + head + "metadata: {name: a, annotations: {flotilla.sh/template: \"false\"}}\ndata: {run: 'echo ${HOME}'}\n",
			want:  []string{"ConfigMap default/a"}, contain: "${HOME}",
		},
		"after Kustomize": {
			files: "-- kustomization.yaml --\nresources: [a.yaml]\nnamePrefix: ${ .ClusterName }-\n-- a.yaml --\n" + head + "metadata: {name: a}\ndata: {env: \"${ .ClusterLabels.env }\"}\n",
			want:  []string{"ConfigMap default/paris-a"}, contain: `"env":"prod"`,
		},
		"a missing label": {
			files: "-- sub/a.yaml --\n" + configMap("a") + "---\n" + head + "metadata: {name: b}\ndata:\n  env: ${ .ClusterLabels.env }\n  zone: z-${ .ClusterLabels.zone }\n",
			err:   `sub/a.yaml:13: ConfigMap b: data.zone: "${ .ClusterLabels.zone }": the cluster has no label "zone"; set it with: kubectl label clusters.fleet.cattle.io -n fleet-default paris zone=VALUE`,
		},
		"several at once": {
			files: "-- a.yaml --\n" + head + "metadata: {name: a}\ndata:\n  one: ${ .ClusterValues.one }\n  two: ${ .ClusterValues.two }\n",
			err:   "a.yaml:6: ConfigMap a: data.two",
		},
		"a missing label behind Kustomize": {
			files: "-- kustomization.yaml --\nresources: [base]\n-- base/kustomization.yaml --\nresources: [a.yaml]\n-- base/a.yaml --\n" + head + "metadata: {name: a}\ndata:\n  zone: \"${ .ClusterLabels.zone }\"\n",
			err:   `base/a.yaml:5: ConfigMap a: data.zone: "${ .ClusterLabels.zone }": the cluster has no label "zone"`,
		},
		"a value that is null": {
			files: "-- a.yaml --\n" + head + "metadata: {name: a}\ndata: {x: \"${ .ClusterValues.none }\"}\n", err: "a.yaml:4: ConfigMap a: data.x: \"${ .ClusterValues.none }\": it reads something that is not there",
		},
		"no template": {
			files: "-- a.yaml --\n" + head + "metadata: {name: a}\ndata: {run: 'echo ${HOME}'}\n", err: `a.yaml:4: ConfigMap a: data.run: "${HOME}": not a valid template: template: data.run:1: function "HOME" not defined (the annotation flotilla.sh/template: "false" keeps the object as it is)`,
		},
		"what is no object any more": {
			files: "-- a.yaml --\n" + head + "metadata: {name: a, labels: {num: \"${ .ClusterValues.replicas }\"}}\n", err: `a.yaml:1: filled in, this cannot be applied: line 1: metadata.labels["num"] of ConfigMap a is the number 3: put it in quotes`,
		},
		"two that become one": {
			files: "-- a.yaml --\n" + head + "metadata: {name: paris}\n-- b.yaml --\n" + head + "metadata: {name: \"${ .ClusterName }\"}\n", err: "ConfigMap default/paris is in a.yaml:1 and in b.yaml:1",
		},
		"templates of the root see values": {
			files:   "-- a.yaml --\n" + head + "metadata: {name: \"${ .ClusterName }\"}\n-- templates/b.yaml --\n" + head + "metadata: {name: b}\ndata: {x: '${HOME}'}\n",
			want:    []string{"ConfigMap default/b", "ConfigMap default/paris"},
			contain: "${HOME}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s.cluster, s.options = paris(), filled
			s.check(t)
		})
	}
}

func TestTemplatesInChartsAreLeftAlone(t *testing.T) {
	s := situation{
		files: web + "-- templates/a.yaml --\n" + configMap("a") + "  run: ${HOME}\n", cluster: paris(),
		options: fleet.BundleDeploymentOptions{TemplateManifests: true}, want: []string{"ConfigMap default/a"}, contain: "${HOME}",
	}
	if got := s.check(t).Warnings; len(got) != 1 || !strings.Contains(got[0].Message, "templateManifests has no effect on a chart") {
		t.Errorf("got %v", got)
	}
}

func TestClustersThatTemplatesCannotTellApartShareARender(t *testing.T) {
	renders := 0
	memo := render.NewMemo(counted{render.New(), &renders}, 1<<20)
	one := func(text string, change func(*templating.Cluster)) error {
		cluster := paris()
		change(cluster)
		result, err := memo.Render(context.Background(), render.Request{
			Files:  rendertest.Files("-- a.yaml --\n" + configMap("a") + "  env: \"" + text + "\"\n"),
			Bundle: "shop", Options: fleet.BundleDeploymentOptions{TemplateManifests: true}, Cluster: cluster,
		})
		if err == nil && len(result.Objects) != 1 {
			t.Errorf("got %+v", result)
		}
		return err
	}
	nothing := func(*templating.Cluster) {}
	other := func(c *templating.Cluster) { c.Name, c.Labels = "rome", map[string]string{"env": "prod", "more": "x"} }
	label := func(c *templating.Cluster) { c.Labels = map[string]string{"env": "dev"} }
	for _, tt := range []struct {
		text   string
		change func(*templating.Cluster)
		want   int
	}{
		{"${ .ClusterLabels.env }", nothing, 1},
		{"${ .ClusterLabels.env }", other, 1},
		{"${ .ClusterLabels.env }", label, 2},
		{"${ len .ClusterLabels }", nothing, 3},
		{"${ len .ClusterLabels }", other, 4},
	} {
		if err := one(tt.text, tt.change); err != nil || renders != tt.want {
			t.Errorf("%s: %d renders, want %d; %v", tt.text, renders, tt.want, err)
		}
	}
	// An error names the cluster, and is its alone.
	for name, change := range map[string]func(*templating.Cluster){"paris": nothing, "rome": other} {
		err := one("${ .ClusterLabels.zone }", change)
		if err == nil || !strings.Contains(err.Error(), name+" zone=VALUE") || fault.ReasonOf(err, "") != render.ReasonFill {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// counted counts renders.
type counted struct {
	render.Renderer
	renders *int
}

func (c counted) Render(ctx context.Context, req render.Request) (*render.Result, error) {
	*c.renders++
	return c.Renderer.Render(ctx, req)
}

func TestAgentsGetWhatTemplatesKnow(t *testing.T) {
	req := render.Request{
		Files:   rendertest.Files("-- a.yaml --\n" + configMap("a-${ .ClusterName }")),
		Options: fleet.BundleDeploymentOptions{TemplateManifests: true},
		Cluster: paris(),
	}
	sent := render.ForCluster(req)
	sent.Files = req.Files
	result, err := render.New().Render(context.Background(), sent)
	if err != nil || result.Objects[0].Name != "a-paris" {
		t.Errorf("got %+v, %v", result, err)
	}
	if !slices.Equal(render.Answers(result.Asked, &req), []string{`"paris"`}) {
		t.Errorf("asked %q", result.Asked)
	}
}
