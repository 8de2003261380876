package lint

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/pipeline"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/target"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func TestExamplesAreSelected(t *testing.T) {
	for name, s := range map[string]*metav1.LabelSelector{
		"labels": {MatchLabels: map[string]string{"env": "prod"}},
		"expressions": {MatchLabels: map[string]string{"env": "prod"}, MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "zone", Operator: "In", Values: []string{"a", "b"}}, {Key: "gpu", Operator: "Exists"},
			{Key: "edge", Operator: "DoesNotExist"}, {Key: "tier", Operator: "NotIn", Values: []string{"x"}}, {Key: "env", Operator: "Exists"},
		}},
		"everything": {},
	} {
		selector, err := metav1.LabelSelectorAsSelector(s)
		if err != nil || !selector.Matches(labels.Set(satisfying(s))) {
			t.Errorf("%s: %v does not fit %s", name, satisfying(s), selector)
		}
	}
}

func TestClustersToLookAt(t *testing.T) {
	prod := fleet.BundleTarget{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}}
	drafts := []bundle.Draft{
		{Spec: fleet.BundleSpec{Targets: []fleet.BundleTarget{prod, {ClusterName: "berlin"}, {ClusterGroup: "edge"}}}},
		{Spec: fleet.BundleSpec{Targets: []fleet.BundleTarget{prod, {ClusterSelector: &metav1.LabelSelector{}}}}},
	}
	var got []string
	for _, c := range clustersOf(drafts, []pipeline.Cluster{{Cluster: target.Cluster{Name: "given"}}}, map[string]string{"a": "b"}) {
		got = append(got, fmt.Sprint(c.Name, " ", c.Labels, " ", c.Groups))
	}
	want := []string{"given map[] []", "example map[a:b] []", "example-3 map[a:b env:prod] []", "berlin map[a:b] []", "example-5 map[a:b] [{edge map[]}]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestClustersThatShareANamespace: the hub takes one of them alone.
func TestClustersThatShareANamespace(t *testing.T) {
	var clusters []pipeline.Cluster
	for _, name := range []string{"store-00080", "store-00081", "store-00536", "store-00081"} {
		clusters = append(clusters, pipeline.Cluster{Cluster: target.Cluster{Namespace: "fleet-default", Name: "retail-production-europe-west-" + name}})
	}
	got := sharing(clusters)
	if len(got) != 1 || !strings.Contains(got[0], "store-00081 and fleet-default/retail-production-europe-west-store-00536 get the same namespace") {
		t.Errorf("got %q", got)
	}
}

func TestPaths(t *testing.T) {
	got := parsePath(`.spec.ports[containerPort=80,protocol="TCP"].x[3]`)
	want := []step{
		{name: "spec", index: -1}, {name: "ports", index: -1},
		{index: -1, keys: map[string]string{"containerPort": "80", "protocol": "TCP"}},
		{name: "x", index: -1}, {index: 3},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if name, near := unknown(reflect.TypeFor[*corev1.Pod](), parsePath(`.spec.containers[name="a"].imag`)); name != "imag" || len(near) < 10 {
		t.Errorf("got %q, %q", name, near)
	}
	if name, _ := unknown(reflect.TypeFor[*corev1.Pod](), parsePath(`.metadata.labels.any`)); name != "" {
		t.Errorf("a label is no field: %q", name)
	}
}

// Libraries of the program add kinds to the shared scheme.
func TestKindsWithoutASchemaAreNotJudged(t *testing.T) {
	if err := apiextensionsv1.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	crd := &render.Object{Kind: "CustomResourceDefinition", Name: "a.example.com", Source: "crd.yaml",
		JSON: []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.example.com"}}`)}
	if notes := newKinds().check(crd, func(string) []byte { return nil }); len(notes) > 0 {
		t.Errorf("got %v", notes)
	}
}

func TestWhatTheAPIServerRefuses(t *testing.T) {
	k := newKinds()
	for name, tt := range map[string]struct {
		object string
		want   []string
	}{
		"nothing":                    {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {any: thing}\n", nil},
		"a kind that is not its own": {"apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nany: thing\n", nil},
		"two ports of one number and protocol": {
			"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec:\n  ports:\n  - {port: 80}\n  - {port: 80}\n",
			[]string{`a.yaml:5: Service a: spec.ports: duplicate entries for key [port=80,protocol="TCP"]: the API server refuses it`},
		},
		"unknown fields and a wrong type": {
			"apiVersion: v1\nkind: Service\nmetadata: {name: a, label: {a: b}}\nspec:\n  typ: x\n  ports: 80\n",
			[]string{
				`a.yaml:3: Service a: unknown field "metadata.label": the API server refuses it; did you mean "labels"?`,
				`a.yaml:5: Service a: unknown field "spec.typ": the API server refuses it; did you mean "type"?`,
				`a.yaml:6: Service a: spec.ports: expected list, got &{80}: the API server refuses it`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := yaml.YAMLToJSON([]byte(tt.object))
			if err != nil {
				t.Fatal(err)
			}
			var u struct {
				Kind     string            `json:"kind"`
				Metadata metav1.ObjectMeta `json:"metadata"`
			}
			_ = yaml.Unmarshal(raw, &u)
			var got []string
			for _, n := range k.check(&render.Object{JSON: raw, Kind: u.Kind, Name: "a", Source: "a.yaml:1"}, func(string) []byte { return []byte(tt.object) }) {
				got = append(got, n.String())
			}
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
