package observe

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-sh/flotilla/internal/apply"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDifferences(t *testing.T) {
	for name, test := range map[string]struct {
		wanted, live string
		want         []fleet.FieldDrift
	}{
		"equal":           {"spec: {a: 1}", "spec: {a: 1}", nil},
		"a value":         {"spec: {a: 1}", "spec: {a: 2}", []fleet.FieldDrift{{Path: "spec.a", Desired: "1", Live: "2"}}},
		"removed":         {"spec: {a: 1}", "spec: {}", []fleet.FieldDrift{{Path: "spec.a", Desired: "1"}}},
		"null is a value": {"spec: {a: null}", "spec: {}", []fleet.FieldDrift{{Path: "spec.a", Desired: "null"}}},
		"by name": {"c: [{name: a, image: x}, {name: b, image: w}]", "c: [{name: b, image: z}, {name: a, image: x}]",
			[]fleet.FieldDrift{{Path: "c[name=b].image", Desired: `"w"`, Live: `"z"`}}},
		"by position":     {"c: [x, w]", "c: [x, z]", []fleet.FieldDrift{{Path: "c[1]", Desired: `"w"`, Live: `"z"`}}},
		"a key with dots": {"l: {a.b/c: x}", "l: {a.b/c: w}", []fleet.FieldDrift{{Path: "l[a.b/c]", Desired: `"x"`, Live: `"w"`}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := reported(differences(parsed(t, test.wanted), parsed(t, test.live)))
			if len(got) != len(test.want) {
				t.Fatalf("got %+v, want %+v", got, test.want)
			}
			for i := range got {
				if got[i] != test.want[i] {
					t.Errorf("got %+v, want %+v", got[i], test.want[i])
				}
			}
		})
	}
}

func TestRules(t *testing.T) {
	ref := apply.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "n", Name: "web"}
	wanted, live := "spec: {replicas: 1, t: {c: [{name: app, image: a}]}}", "spec: {replicas: 3, t: {c: [{name: app, image: b}]}}"
	for name, test := range map[string]struct {
		patch fleet.ComparePatch
		left  int
	}{
		"a pointer":                  {fleet.ComparePatch{APIVersion: "apps/v1", Kind: "Deployment", JsonPointers: []string{"/spec/replicas"}}, 1},
		"a parent":                   {fleet.ComparePatch{Kind: "Deployment", JsonPointers: []string{"/spec"}}, 0},
		"into a list":                {fleet.ComparePatch{Kind: "*", JsonPointers: []string{"/spec/t/c/0/image"}}, 1},
		"an operation":               {fleet.ComparePatch{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "n", Name: "web", Operations: []fleet.Operation{{Op: "remove", Path: "/spec/replicas"}}}, 1},
		"another object":             {fleet.ComparePatch{Kind: "Deployment", Name: "api", JsonPointers: []string{"/spec"}}, 2},
		"another kind":               {fleet.ComparePatch{Kind: "StatefulSet", JsonPointers: []string{"/spec"}}, 2},
		"no common prefix":           {fleet.ComparePatch{Kind: "Deployment", JsonPointers: []string{"/spec/rep"}}, 2},
		"another group":              {fleet.ComparePatch{APIVersion: "batch/v1", Kind: "Deployment", JsonPointers: []string{"/spec"}}, 2},
		"ignore is for missing ones": {fleet.ComparePatch{Kind: "Deployment", Operations: []fleet.Operation{{Op: "ignore"}}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			rules := Rules{Patches: []fleet.ComparePatch{test.patch}}
			if got := rules.keep(ref, differences(parsed(t, wanted), parsed(t, live))); len(got) != test.left {
				t.Errorf("%d differences are left, want %d: %+v", len(got), test.left, got)
			}
		})
	}
}

func TestMayBeMissing(t *testing.T) {
	rules := Rules{Patches: []fleet.ComparePatch{{APIVersion: "v1", Kind: "Secret", Namespace: "n", Name: "cert-.*", Operations: []fleet.Operation{{Op: "ignore"}}}}}
	for name, want := range map[string]bool{"cert-a": true, "a-cert-b": false} {
		if got := rules.mayBeMissing(apply.Ref{Version: "v1", Kind: "Secret", Namespace: "n", Name: name}); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
