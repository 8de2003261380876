package target

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// fill sets v and all below it to something that is not its zero value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[fleet.GenericMap]() {
			v.Set(reflect.ValueOf(fleet.GenericMap{Data: map[string]any{"key": "value"}}))
			return
		}
		if v.Type() == reflect.TypeFor[metav1.LabelSelector]() {
			v.Set(reflect.ValueOf(*selector("a", "b")))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value)
		v.SetMapIndex(reflect.ValueOf("key"), value)
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	}
}

// A field that is added to the API and forgotten in Merge fails here.
func TestEveryFieldIsMerged(t *testing.T) {
	var full, helm fleet.BundleDeploymentOptions
	fill(reflect.ValueOf(&full).Elem())
	helm.Helm, helm.Kustomize, helm.YAML, helm.Diff = &fleet.HelmOptions{}, &fleet.KustomizeOptions{}, &fleet.YAMLOptions{}, &fleet.DiffOptions{}
	for name, got := range map[string]fleet.BundleDeploymentOptions{
		"over nothing":          Merge(fleet.BundleDeploymentOptions{}, full),
		"over empty structures": Merge(helm, full),
		"under nothing":         Merge(full, fleet.BundleDeploymentOptions{}),
		"under empty ones":      Merge(full, helm),
	} {
		if diff := cmp.Diff(full, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestMerge(t *testing.T) {
	yes, no := true, false
	type options = fleet.BundleDeploymentOptions
	for name, tt := range map[string]struct{ base, over, want options }{
		"texts win": {
			options{TargetNamespace: "a", DefaultNamespace: "a"}, options{TargetNamespace: "b"},
			options{TargetNamespace: "b", DefaultNamespace: "a"},
		},
		"false can be set where unset differs": {
			options{CreateNamespace: &yes}, options{CreateNamespace: &no}, options{CreateNamespace: &no},
		},
		"switches stay on": {
			options{KeepResources: true}, options{DeleteCRDResources: true}, options{KeepResources: true, DeleteCRDResources: true},
		},
		"drift is replaced as a whole": {
			options{CorrectDrift: &fleet.CorrectDrift{Enabled: true, Force: true}}, options{CorrectDrift: &fleet.CorrectDrift{}},
			options{CorrectDrift: &fleet.CorrectDrift{}},
		},
		"values are merged deeply": {
			helmValues(map[string]any{"a": map[string]any{"b": 1, "c": 1}, "l": []any{1, 2}, "s": map[string]any{"x": 1}}),
			helmValues(map[string]any{"a": map[string]any{"c": 2}, "l": []any{3}, "s": nil}),
			helmValues(map[string]any{"a": map[string]any{"b": 1, "c": 2}, "l": []any{3}, "s": nil}),
		},
		"lists are joined": {
			options{YAML: &fleet.YAMLOptions{Overlays: []string{"a"}}}, options{YAML: &fleet.YAMLOptions{Overlays: []string{"b"}}},
			options{YAML: &fleet.YAMLOptions{Overlays: []string{"a", "b"}}},
		},
		"a restriction is not replaced": {
			options{AllowedTargetNamespaceSelector: selector("a", "b")}, options{AllowedTargetNamespaceSelector: selector()},
			options{AllowedTargetNamespaceSelector: selector("a", "b")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			base, over := tt.base.DeepCopy(), tt.over.DeepCopy()
			if diff := cmp.Diff(tt.want, Merge(tt.base, tt.over)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(*base, tt.base) + cmp.Diff(*over, tt.over); diff != "" {
				t.Errorf("an input was changed: %s", diff)
			}
		})
	}
}

func TestNegativeTimeoutTakesBack(t *testing.T) {
	spec := toAll(fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{TimeoutSeconds: 60}})
	spec.Targets[0].Helm = &fleet.HelmOptions{TimeoutSeconds: -1}
	if got := assign(t, spec, cluster("a")); got[0].Options.Helm.TimeoutSeconds != 0 {
		t.Errorf("got %d", got[0].Options.Helm.TimeoutSeconds)
	}
}

// random sets some fields of v. The values keep one shape: an object and a text
// under one key cannot be merged in any order.
func random(v reflect.Value, r *rand.Rand) {
	if v.Type() == reflect.TypeFor[fleet.GenericMap]() {
		v.Set(reflect.ValueOf(fleet.GenericMap{Data: randomValues(r, 3)}))
		return
	}
	if v.Kind() != reflect.Struct && r.IntN(2) == 0 {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			random(v.Field(i), r)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		random(v.Elem(), r)
	case reflect.String:
		v.SetString(string(rune('a' + r.IntN(26))))
	case reflect.Int, reflect.Int64:
		v.SetInt(r.Int64N(9) - 1)
	case reflect.Bool:
		v.SetBool(true)
	default:
		fill(v)
	}
}

func randomValues(r *rand.Rand, depth int) map[string]any {
	out := map[string]any{}
	for _, key := range []string{"a", "b", "c"} {
		switch {
		case r.IntN(2) == 0:
		case depth > 0 && key == "a":
			out[key] = randomValues(r, depth-1)
		default:
			out[key] = r.IntN(100)
		}
	}
	return out
}

func TestMergeIsAssociative(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var o [3]fleet.BundleDeploymentOptions
		for i := range o {
			random(reflect.ValueOf(&o[i]).Elem(), r)
		}
		left, right := Merge(Merge(o[0], o[1]), o[2]), Merge(o[0], Merge(o[1], o[2]))
		if diff := cmp.Diff(left, right); diff != "" {
			t.Fatal(diff)
		}
	}
}
