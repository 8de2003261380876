package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/digest"
	"github.com/flotilla-sh/flotilla/internal/pipeline"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/render/rendertest"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/target"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// everyLayout is a repository with a bundle of each layout, in which much has
// several keys.
const everyLayout = `
-- raw/fleet.yaml --
templateManifests: true
labels: {b: "2", a: "1", c: "3"}
yaml: {overlays: [one, two]}
targetCustomizationMode: AllMatches
targetCustomizations:
- {name: prod, clusterSelector: {matchLabels: {env: prod}}, yaml: {overlays: [prod]}, ignore: {conditions: [{type: b, status: "x"}]}}
- {name: eu, clusterSelector: {matchLabels: {region: eu}}, namespaceLabels: {z: "1", y: "2"}}
-- raw/b.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: b, labels: {z: "${ .ClusterLabels.env }", a: "${ .ClusterName }"}}
data: {two: "${ range $k, $v := .ClusterLabels }${ $k }=${ $v };${ end }", one: "${ .ClusterValues | toJson }"}
-- raw/a.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
-- raw/overlays/one/a_patch.yaml --
data: {one: "1", three: "3"}
-- raw/overlays/two/a_patch.yaml --
data: {two: "2"}
-- raw/overlays/prod/c.json --
{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c"}}
-- chart/fleet.yaml --
helm:
  values: {host: "${ .ClusterName }.example.com", map: {c: 1, a: 2, b: 3}}
  templateValues: {more: "{x: ${ .ClusterLabels.env }, w: 1}", again: "[1, 2]"}
  valuesFiles: [values-more.yaml]
-- chart/values-more.yaml --
map: {d: 4}
-- chart/Chart.yaml --
apiVersion: v2
name: chart
version: 1.0.0
-- chart/templates/a.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}"}
data: {all: {{ .Values | toJson | quote }}, has: "{{ .Capabilities.APIVersions.Has "apps/v1" }}"}
-- chart/charts/sub/Chart.yaml --
apiVersion: v2
name: sub
version: 1.0.0
-- chart/charts/sub/templates/b.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: sub}
-- kustomize/fleet.yaml --
kustomize: {dir: prod}
-- kustomize/base/kustomization.yaml --
resources: [a.yaml]
configMapGenerator: [{name: gen, literals: [b=2, a=1]}]
-- kustomize/base/a.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
-- kustomize/prod/kustomization.yaml --
resources: [../base]
commonLabels: {b: "2", a: "1"}
-- bad/fleet.yaml --
helm: 1
`

const childEnv = "FLOTILLA_TEST_DIGEST"

// outcomeDigest names all that comes of everyLayout, with files, clusters and
// the keys of maps in a random order.
func outcomeDigest(t *testing.T) string {
	t.Helper()
	files := rendertest.Files(strings.TrimPrefix(everyLayout, "\n"))
	rand.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
	tree := fstest.MapFS{}
	for _, file := range files {
		tree[file.Path] = &fstest.MapFile{Data: file.Data}
	}
	clusters := someClusters()
	rand.Shuffle(len(clusters), func(i, j int) { clusters[i], clusters[j] = clusters[j], clusters[i] })
	drafts, err := bundle.Scan(source.Tree{Commit: "0123456789abcdef", FS: tree}, bundle.Input{
		RepoName: "repo", Labels: map[string]string{"x": "1", "w": "2"},
		Targets: []fleet.GitTarget{{Name: "all", ClusterSelector: &metav1.LabelSelector{}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	stages := &pipeline.Stages{Renderer: render.NewMemo(render.New(), 1<<20), Key: content.Key("0123456789abcdef")}
	var all []string
	for _, d := range drafts {
		spec, err := digest.OfJSON(d.Spec)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d.Name, d.SourceDigest, spec, fmt.Sprint(d.Warnings, d.Err))
		if d.Err != nil {
			continue
		}
		for _, o := range run(t, stages, pipeline.Input{
			Bundle: target.Bundle{Namespace: "fleet-default", Name: d.Name, Labels: d.Labels, Spec: d.Spec},
			Files:  d.Files, SourceDigest: d.SourceDigest, Commit: "0123456789abcdef", Clusters: clusters,
		}) {
			if o.Err != nil {
				t.Errorf("%s: %v", d.Name, o.Err)
			}
			desired, err := digest.OfJSON(o.Desired)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, desired)
		}
	}
	return digest.OfBytes([]byte(strings.Join(all, "\n")))
}

func someClusters() []pipeline.Cluster {
	var out []pipeline.Cluster
	for i, env := range []string{"prod", "dev", "prod", "test"} {
		c := cluster(fmt.Sprintf("c%d", i), "v1.36.0", env)
		c.Labels = map[string]string{"env": env, "region": []string{"eu", "us"}[i%2], "a": "1", "b": "2"}
		c.TemplateValues = map[string]any{"z": 1, "y": map[string]any{"q": "1", "p": 2.5}}
		c.Capabilities.APIs = []render.API{{GroupVersion: "v1", Kind: "ConfigMap", Namespaced: true}, {GroupVersion: "apps/v1", Kind: "Deployment", Namespaced: true}}
		out = append(out, c)
	}
	return out
}

// Equal input leads to equal digests: in any order of files, clusters and keys,
// and in another process, whose maps have another order.
func TestEqualInputHasEqualDigests(t *testing.T) {
	want := outcomeDigest(t)
	if os.Getenv(childEnv) != "" {
		fmt.Println("digest=" + want)
		return
	}
	for range 5 {
		if got := outcomeDigest(t); got != want {
			t.Fatalf("got %s and %s in one process", want, got)
		}
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), childEnv+"=1")
	out, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, got, _ := strings.Cut(string(out), "digest="); !strings.HasPrefix(got, want+"\n") {
		t.Errorf("got %s here and elsewhere\n%s", want, out)
	}
}
