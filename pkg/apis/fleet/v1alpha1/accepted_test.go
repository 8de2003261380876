package v1alpha1_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func TestFleetManifestsAreAcceptedUnchanged(t *testing.T) {
	crds := loadCRDs(t)
	for _, obj := range acceptedManifests(t) {
		t.Run(kindAndName(obj), func(t *testing.T) {
			pruned, problems := crds[obj["kind"].(string)].admit(obj)
			if len(pruned) > 0 {
				t.Errorf("fields were pruned: %v", pruned)
			}
			if len(problems) > 0 {
				t.Errorf("rejected: %v", problems)
			}
		})
	}
}

func TestFleetManifestsSurviveTheGoTypes(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := fleet.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, obj := range acceptedManifests(t) {
		t.Run(kindAndName(obj), func(t *testing.T) {
			typed, err := scheme.New(fleet.SchemeGroupVersion.WithKind(obj["kind"].(string)))
			if err != nil {
				t.Fatal(err)
			}
			got := throughGo(t, obj, typed)
			if diff := cmp.Diff(flatten(obj), flatten(got)); diff != "" {
				t.Errorf("lost or changed (-manifest +Go):\n%s", diff)
			}
		})
	}
}

// throughGo decodes obj strictly into typed, copies that and encodes the copy.
func throughGo(t *testing.T, obj map[string]any, typed runtime.Object) map[string]any {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj, typed, true); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(typed.DeepCopyObject())
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// durations maps the ways in which the manifests write durations to the one in
// which Go does.
var durations = map[any]any{"0": "0s", "10m": "10m0s", "30m": "30m0s", "5m": "5m0s", "4h": "4h0m0s", "1h": "1h0m0s", "240h": "240h0m0s"}

// flatten turns an object into path → value and leaves out what JSON may leave
// out: null, false, empty text and empty objects that are not selectors.
func flatten(obj map[string]any) map[string]any {
	out := map[string]any{}
	flattenInto(out, "", obj)
	return out
}

func flattenInto(out map[string]any, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			flattenInto(out, path+"."+key, child)
		}
		if len(v) == 0 && strings.HasSuffix(path, "elector") {
			out[path] = "{}"
		}
	case []any:
		for i, child := range v {
			flattenInto(out, path+"["+string(rune('0'+i))+"]", child)
		}
	case nil, bool:
		if v == true {
			out[path] = v
		}
	case int64:
		out[path] = float64(v)
	case string:
		out[path] = value
		if same, ok := durations[v]; ok {
			out[path] = same
		}
	default:
		out[path] = v
	}
}

// Every field that a user of Rancher Fleet can write is in some manifest of
// testdata/accepted, so that the tests above speak of all fields.
func TestManifestsUseEveryField(t *testing.T) {
	used := map[string]bool{}
	for _, obj := range acceptedManifests(t) {
		collectPaths(used, obj["kind"].(string), obj)
	}
	// A HelmOp takes all options of a Bundle; they are in the Bundle's manifest.
	for path := range maps.Clone(used) {
		if rest, ok := strings.CutPrefix(path, "Bundle.spec."); ok {
			used["HelmOp.spec."+rest] = true
		}
	}
	for kind, crd := range loadCRDs(t) {
		for _, path := range schemaPaths(kind, crd.structural) {
			if !used[path] && !writtenByFlotilla(path) {
				t.Errorf("%s is in no manifest", path)
			}
		}
	}
}

// writtenByFlotilla tells fields that Rancher Fleet does not have, or that no
// user writes.
func writtenByFlotilla(path string) bool {
	_, field, _ := strings.Cut(path, ".")
	return path == "GitRepo.spec.chartPollingInterval" || strings.HasPrefix(field, "spec.charts") || path == "Bundle.spec.ociRegistrySecret" || path == "HelmOp.spec.ociRegistrySecret" ||
		strings.HasPrefix(field, "status") || strings.HasSuffix(field, "render") || strings.HasSuffix(field, "templateManifests") ||
		slices.ContainsFunc([]string{"spec.content", "spec.removal", "spec.renderInput", "spec.renderAsked"}, func(prefix string) bool {
			return field == prefix || strings.HasPrefix(field, prefix+".") || strings.HasPrefix(field, prefix+"[")
		})
}

func collectPaths(used map[string]bool, path string, value any) {
	used[path] = true
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			collectPaths(used, path+"."+key, child)
		}
	case []any:
		for _, child := range v {
			collectPaths(used, path+"[]", child)
		}
	}
}

// schemaPaths lists the fields below path, without metadata and the values of
// maps.
func schemaPaths(path string, s *structuralschema.Structural) []string {
	var paths []string
	for name, property := range s.Properties {
		child := path + "." + name
		if slices.Contains([]string{"apiVersion", "kind", "metadata"}, name) && !strings.Contains(path, ".") {
			continue
		}
		paths = append(paths, child)
		paths = append(paths, schemaPaths(child, &property)...)
	}
	if s.Items != nil {
		paths = append(paths, schemaPaths(path+"[]", s.Items)...)
	}
	return paths
}
