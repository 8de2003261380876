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

// situation is a bundle and what a user sees of its render.
type situation struct {
	files   string
	options fleet.BundleDeploymentOptions
	caps    render.Capabilities
	cluster *templating.Cluster
	want    []string // objects as "Kind namespace/name"
	contain string   // in the objects' JSON
	err     string
}

func (s *situation) request() render.Request {
	return render.Request{Files: rendertest.Files(s.files), Bundle: "shop", Commit: "0123456789abcdef", Options: s.options, Capabilities: s.caps, Cluster: s.cluster}
}

func (s *situation) check(t *testing.T) *render.Result {
	t.Helper()
	result, err := render.New().Render(context.Background(), s.request())
	if s.err != "" {
		if err == nil || !strings.Contains(err.Error(), s.err) {
			t.Fatalf("got %v\nwant %s", err, s.err)
		}
		if fault.KindOf(err) != fault.Stalled || fault.ReasonOf(err, "") == "" {
			t.Errorf("%v is not stalled with a reason", err)
		}
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range result.Objects {
		got = append(got, o.Kind+" "+o.Namespace+"/"+o.Name)
	}
	if !slices.Equal(got, s.want) {
		t.Errorf("got %q\nwant %q", got, s.want)
	}
	if all := string(allJSON(result)); !strings.Contains(all, s.contain) {
		t.Errorf("got %s\nwant %s in it", all, s.contain)
	}
	return result
}

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\ndata:\n  from: " + name + "\n"
}

const (
	role   = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: reader\n"
	widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: w\n"
	crd    = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: widgets.example.com\nspec:\n  group: example.com\n  scope: Namespaced\n  names: {kind: Widget}\n"
	web    = "-- Chart.yaml --\napiVersion: v2\nname: web\nversion: 1.2.3\n"
)

func TestRawYAML(t *testing.T) {
	overlay := func(names ...string) fleet.BundleDeploymentOptions {
		return fleet.BundleDeploymentOptions{YAML: &fleet.YAMLOptions{Overlays: names}}
	}
	overlays := "-- a.yaml --\n" + configMap("a") +
		"-- overlays/prod/a_patch.yaml --\ndata: {from: prod, more: x}\n" +
		"-- overlays/big/a.yaml --\n" + configMap("bigger") +
		"-- overlays/more/sub/b.yaml --\n" + configMap("b") +
		"-- overlays/json/a_patch.json --\n[{\"op\": \"replace\", \"path\": \"/data/from\", \"value\": \"json\"}]\n" +
		"-- overlays/lost/c_patch.yaml --\ndata: {}\n"
	for name, s := range map[string]situation{
		"files of all spellings, sorted for applying": {
			files: "-- z.yaml --\nkind: Namespace\napiVersion: v1\nmetadata: {name: ns}\n-- a.yml --\n" + configMap("a") + "-- sub/b.json --\n{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"b\"}}\n-- crd.yaml --\n" + crd + "-- README.md --\nhello\n-- .gitignore --\nx\n",
			want:  []string{"CustomResourceDefinition /widgets.example.com", "Namespace /ns", "ConfigMap default/a", "ConfigMap default/b"},
		},
		"nested bundles and charts are left out": {
			files: "-- a.yaml --\n" + configMap("a") + "-- fleet.yaml --\nname: x\n-- other/fleet.yaml --\nname: y\n-- other/b.yaml --\n" + configMap("b") + "-- chart/Chart.yaml --\nname: z\n-- chart/templates/c.yaml --\n{{ nonsense\n",
			want:  []string{"ConfigMap default/a"},
		},
		"root templates see values and the commit": {
			files:   "-- a.yaml --\n" + configMap("a") + "-- templates/t.yaml --\n" + configMap("{{ .Values.name }}") + "  version: {{ .Chart.Version }}\n  release: {{ .Release.Name }}\n",
			options: fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Values: &fleet.GenericMap{Data: map[string]any{"name": "t"}}}},
			want:    []string{"ConfigMap default/a", "ConfigMap default/t"}, contain: `"release":"shop","version":"v0.0.0+git-0123456789ab"`,
		},
		"no templating outside templates": {
			files: "-- a.yaml --\n" + configMap("a") + "  x: '{{ .Values.x }}'\n", want: []string{"ConfigMap default/a"}, contain: `{{ .Values.x }}`,
		},
		"no overlay":          {files: overlays, want: []string{"ConfigMap default/a"}, contain: `"from":"a"`},
		"a merge patch":       {files: overlays, options: overlay("prod"), want: []string{"ConfigMap default/a"}, contain: `{"from":"prod","more":"x"}`},
		"a JSON patch":        {files: overlays, options: overlay("json"), want: []string{"ConfigMap default/a"}, contain: `"from":"json"`},
		"a replaced file":     {files: overlays, options: overlay("big"), want: []string{"ConfigMap default/bigger"}},
		"overlays in order":   {files: overlays, options: overlay("more", "prod", "json"), want: []string{"ConfigMap default/a", "ConfigMap default/b"}, contain: `{"from":"json","more":"x"}`},
		"a patch for nothing": {files: overlays, options: overlay("lost"), err: `overlays/lost/c_patch.yaml is a patch for c.yaml, which the bundle does not have`},
		"an unknown overlay":  {files: overlays, options: overlay("typo"), err: `yaml.overlays names "typo" and the bundle has no files in overlays/typo/`},
		"a strategic merge patch": {
			files: "-- d.yaml --\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: {containers: [{name: a, image: x}, {name: b, image: y}]}}}\n" +
				"-- overlays/o/d_patch.yaml --\nspec: {template: {spec: {containers: [{name: b, image: new}]}}}\n",
			options: overlay("o"), want: []string{"Deployment default/d"}, contain: `[{"image":"x","name":"a"},{"image":"new","name":"b"}]`,
		},
		"a merge patch of a kind that is not built in": {
			files:   "-- w.yaml --\n" + widget + "spec: {list: [1, 2]}\n-- overlays/o/w_patch.yaml --\nspec: {list: [3]}\n",
			options: overlay("o"), want: []string{"Widget /w"}, contain: `"list":[3]`,
		},
		"a patch for one of several objects": {
			files:   "-- a.yaml --\n" + configMap("a") + "---\n" + configMap("b") + "-- overlays/o/a_patch.yaml --\nkind: ConfigMap\nmetadata: {name: b}\ndata: {from: patched}\n",
			options: overlay("o"), want: []string{"ConfigMap default/a", "ConfigMap default/b"}, contain: `{"from":"patched"}`,
		},
		"a patch that could be for several objects": {
			files:   "-- a.yaml --\n" + configMap("a") + "---\n" + configMap("b") + "-- overlays/o/a_patch.yaml --\ndata: {from: patched}\n",
			options: overlay("o"), err: "overlays/o/a_patch.yaml cannot be applied to a.yaml: the file has several objects",
		},
		"an object without apiVersion": {files: "-- conf/pod.yaml --\n# hello\nkind: Pod\n", err: "conf/pod.yaml:2: this is no Kubernetes object, apiVersion is missing (it has kind): correct it, or leave the file out with .fleetignore"},
		"a patch of values": {
			files:   web + "-- values.yaml --\nnum: 1\nsize: 2\n-- templates/a.yaml --\n" + configMap("a") + "  num: 'n{{ .Values.num }} {{ .Values.size }}'\n-- overlays/prod/values_patch.yaml --\nsize: 3\n",
			options: overlay("prod"), want: []string{"ConfigMap default/a"}, contain: `"num":"n1 3"`,
		},
		"a patch keeps lines": {
			files:   "-- a.yaml --\n# hello\n\n" + configMap("a") + "---\n\n" + configMap("b") + "---\nkind: Pod\n-- overlays/o/a_patch.yaml --\nkind: ConfigMap\nmetadata: {name: b}\ndata: {from: patched}\n",
			options: overlay("o"), err: "a.yaml:18: this is no Kubernetes object, apiVersion is missing",
		},
		"an overlay outside": {files: overlays, options: overlay("../x"), err: `yaml.overlays names "../x", which is no name of a directory below overlays/`},
		"tab":                {files: "-- a.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: a\n", err: "a.yaml:4: this is not YAML: the line is indented with a tab: YAML takes spaces only"},
		"merge conflict":     {files: "-- a.yaml --\nkind: List\n---\n<<<<<<< HEAD\na: b\n=======\na: c\n>>>>>>> x\n", err: "a.yaml:3: this is not YAML: a marker of a merge conflict (<<<<<<<): finish the merge and commit the result"},
		"no YAML":            {files: "-- a.yaml --\na: b: c\n", err: `a.yaml:1: this is not YAML: mapping values are not allowed in this context (near "a: b: c")`},
		"one object in two files": {
			files: "-- a.yaml --\n" + configMap("x") + "-- b.yaml --\n---\n" + configMap("x"), err: "ConfigMap default/x is in a.yaml:1 and in b.yaml:2: remove or rename one of them",
		},
		"one object twice in a file": {files: "-- a.yaml --\n" + configMap("x") + "---\n" + configMap("x"), err: "ConfigMap default/x is in a.yaml:1 and in a.yaml:8"},
	} {
		t.Run(name, func(t *testing.T) { s.check(t) })
	}
}

func TestWhatIsNoObjectIsLeftOutOfPlainYAML(t *testing.T) {
	s := situation{
		files: "-- a.yaml --\n" + configMap("a") + "---\nreplicas: 1\n-- dashboard.json --\n{\"panels\": []}\n-- base/kustomization.yaml --\nresources: []\n",
		want:  []string{"ConfigMap default/a"},
	}
	want := []string{
		"a.yaml:8: it is left out: this is no Kubernetes object, apiVersion and kind are missing (it has replicas)",
		"base/kustomization.yaml: it is left out: it is a kustomization, and the bundle is not built with Kustomize; the files that it names are deployed as they are. Set kustomize.dir to base",
		"dashboard.json:1: it is left out",
	}
	got := s.check(t).Warnings
	if len(got) != len(want) {
		t.Fatalf("got %q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i].String(), want[i]) {
			t.Errorf("got %s\nwant %s", got[i], want[i])
		}
	}
}

func TestNamespaces(t *testing.T) {
	const own = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own, namespace: mine}\n"
	forced := fleet.BundleDeploymentOptions{TargetNamespace: "forced", DefaultNamespace: "preset"}
	preset := fleet.BundleDeploymentOptions{DefaultNamespace: "preset"}
	knows := func(namespaced bool) render.Capabilities {
		return render.Capabilities{APIs: []render.API{{GroupVersion: "example.com/v2", Kind: "Widget", Namespaced: namespaced}}}
	}
	files := "-- a.yaml --\n" + configMap("a") + "-- own.yaml --\n" + own
	for name, s := range map[string]situation{
		"no option":                        {files: files, want: []string{"ConfigMap default/a", "ConfigMap mine/own"}},
		"a default":                        {files: files, options: preset, want: []string{"ConfigMap preset/a", "ConfigMap mine/own"}},
		"forced":                           {files: files, options: forced, want: []string{"ConfigMap forced/a", "ConfigMap forced/own"}, contain: `"namespace":"forced"`},
		"forced on a cluster-scoped one":   {files: "-- r.yaml --\n" + role, options: forced, err: `r.yaml:1: ClusterRole reader is cluster-scoped, and namespace "forced" is forced on this bundle`},
		"a namespace that means nothing":   {files: "-- r.yaml --\n" + role + "  namespace: x\n", options: preset, want: []string{"ClusterRole /reader"}},
		"a kind that nobody knows":         {files: "-- w.yaml --\n" + widget, options: preset, want: []string{"Widget /w"}},
		"a kind that nobody knows, forced": {files: "-- w.yaml --\n" + widget, options: forced, want: []string{"Widget /w"}},
		"an unknown kind that names one":   {files: "-- w.yaml --\n" + widget + "  namespace: x\n", options: forced, want: []string{"Widget forced/w"}},
		"a kind that the bundle defines":   {files: "-- w.yaml --\n" + widget + "-- c.yaml --\n" + crd, options: preset, want: []string{"CustomResourceDefinition /widgets.example.com", "Widget preset/w"}},
		"a kind that the cluster knows":    {files: "-- w.yaml --\n" + widget, caps: knows(true), options: preset, want: []string{"Widget preset/w"}},
		"cluster-scoped on this cluster":   {files: "-- w.yaml --\n" + widget, caps: knows(false), options: preset, want: []string{"Widget /w"}},
		"definitions of a chart pass": {
			files: web + "-- crds/c.yaml --\n" + crd + "-- templates/a.yaml --\n" + configMap("{{ .Release.Namespace }}"), options: forced,
			want: []string{"CustomResourceDefinition /widgets.example.com", "ConfigMap forced/forced"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := s.check(t)
			if result == nil {
				return
			}
			unknown := strings.Contains(name, "nobody")
			if unknown != slices.Contains(result.UnknownScope, "example.com/v1/Widget") {
				t.Errorf("unknown scope: %v", result.UnknownScope)
			}
			asks := unknown || strings.Contains(name, "cluster knows") || strings.Contains(name, "on this cluster") || strings.Contains(name, "unknown kind")
			if asks != slices.Contains(result.Asked, "scope example.com/Widget") {
				t.Errorf("asked: %v", result.Asked)
			}
		})
	}
}

func TestKustomize(t *testing.T) {
	dir := func(d string) fleet.BundleDeploymentOptions {
		return fleet.BundleDeploymentOptions{Kustomize: &fleet.KustomizeOptions{Dir: d}}
	}
	base := "-- base/kustomization.yaml --\nresources: [a.yaml]\n-- base/a.yaml --\n" + configMap("a") +
		"-- overlays/prod/kustomization.yaml --\nresources: [../../base]\nnamePrefix: prod-\nconfigMapGenerator:\n- name: gen\n  literals: [url=https://example.com]\n"
	chart := web + "-- templates/a.yaml --\n" + configMap("{{ .Release.Name }}") + "-- crds/c.yaml --\n" + crd
	for name, s := range map[string]situation{
		"in the root":                   {files: "-- kustomization.yaml --\nresources: [sub/a.yaml]\nnamespace: k\n-- sub/a.yaml --\n" + configMap("a") + "-- unused.yaml --\nnot: used\n", want: []string{"ConfigMap k/a"}},
		"a directory":                   {files: base, options: dir("overlays/prod"), want: []string{"ConfigMap default/prod-a", "ConfigMap default/prod-gen-b6m879h4d7"}},
		"after a chart":                 {files: chart + "-- kustomization.yaml --\nnameSuffix: -k\n", want: []string{"CustomResourceDefinition /widgets.example.com", "ConfigMap default/shop-k"}},
		"chart and resource":            {files: chart + "-- k/kustomization.yaml --\nresources: [b.yaml]\n-- k/b.yaml --\n" + configMap("b"), options: dir("k"), want: []string{"CustomResourceDefinition /widgets.example.com", "ConfigMap default/b", "ConfigMap default/shop"}},
		"after a chart, which it names": {files: chart + "-- kustomization.yaml --\nnameSuffix: -k\nresources:\n- b.yaml\n- fleet-manifests.yaml\n-- b.yaml --\n" + configMap("b"), want: []string{"CustomResourceDefinition /widgets.example.com", "ConfigMap default/b-k", "ConfigMap default/shop-k"}},
		"inline patch with a URL": {
			files: "-- kustomization.yaml --\nresources: [a.yaml]\npatches:\n- target: {kind: ConfigMap}\n  patch: '[{\"op\": \"add\", \"path\": \"/data/url\", \"value\": \"https://example.com\"}]'\n-- a.yaml --\n" + configMap("a"),
			want:  []string{"ConfigMap default/a"}, contain: "https://example.com",
		},
		"no such directory":   {files: base, options: dir("typo"), err: `kustomize.dir is "typo" and the bundle has no typo/kustomization.yaml`},
		"a remote base":       {files: "-- kustomization.yaml --\nresources:\n- https://github.com/x/y//base?ref=v1\n", err: "kustomization.yaml:2: https://github.com/x/y//base?ref=v1 is outside the bundle, and nothing is fetched"},
		"a remote base below": {files: "-- kustomization.yaml --\nresources: [b]\n-- b/kustomization.yaml --\nresources: ['github.com/x/y?ref=z']\n", err: "b/kustomization.yaml:1: github.com/x/y?ref=z is outside"},
		"a remote patch":      {files: "-- kustomization.yaml --\npatches:\n- path: https://example.com/p.yaml\n", err: "kustomization.yaml:2: https://example.com/p.yaml is outside"},
		"a remote transformer's file": {
			files: "-- kustomization.yaml --\ntransformers: [t.yaml]\n-- t.yaml --\napiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\npath: https://example.com/p.yaml\n",
			err:   "t.yaml:4: https://example.com/p.yaml is outside",
		},
		"outside the bundle": {files: "-- kustomization.yaml --\nresources: [../../etc]\n", err: "kustomization.yaml:1: ../../etc is not in the bundle"},
		"a missing file":     {files: "-- kustomization.yaml --\nresources:\n- a.yaml\n- gone.yaml\n-- a.yaml --\n" + configMap("a"), err: "kustomization.yaml:3: gone.yaml is not in the bundle"},
		"charts in it":       {files: "-- kustomization.yaml --\nhelmCharts: [{name: x}]\n", err: "kustomization.yaml:1: helmCharts is not supported"},
		"an unknown field":   {files: "-- kustomization.yaml --\nresource: []\n", err: "the kustomization in the bundle's directory cannot be built: invalid Kustomization: json: unknown field \"resource\""},
	} {
		t.Run(name, func(t *testing.T) { s.check(t) })
	}
}
