package v1alpha1_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// What is empty is not written: the API server is charged for every field.
func TestEmptyObjectsAreLean(t *testing.T) {
	for want, obj := range map[string]any{
		`{"metadata":{}}`: &fleet.BundleDeployment{},
		`{"metadata":{},"spec":{"options":{"namespace":"web"},"deploymentID":"s-1:2"},"status":{"ready":true}}`: &fleet.BundleDeployment{
			Spec:   fleet.BundleDeploymentSpec{DeploymentID: "s-1:2", Options: fleet.BundleDeploymentOptions{TargetNamespace: "web"}},
			Status: fleet.BundleDeploymentStatus{Ready: true},
		},
		`{"metadata":{},"spec":{"repo":"https://x"}}`: &fleet.GitRepo{Spec: fleet.GitRepoSpec{Repo: "https://x"}},
	} {
		got, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestGenericMap(t *testing.T) {
	var options fleet.HelmOptions
	const text = `{"values":{"a":{"b":[1,"x",null,{"c":true}]}}}`
	if err := json.Unmarshal([]byte(text), &options); err != nil {
		t.Fatal(err)
	}
	copied := options.DeepCopy()
	got, err := json.Marshal(copied)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != text {
		t.Errorf("got %s, want %s", got, text)
	}
	copied.Values.Data["a"].(map[string]any)["b"].([]any)[3].(map[string]any)["c"] = false
	if options.Values.Data["a"].(map[string]any)["b"].([]any)[3].(map[string]any)["c"] != true {
		t.Error("the copy shares an object with the original")
	}
}

func TestGenericMapEdges(t *testing.T) {
	empty, err := json.Marshal(fleet.GenericMap{})
	if err != nil || string(empty) != "{}" {
		t.Errorf("a nil map is %s (%v), want {}", empty, err)
	}
	var g fleet.GenericMap
	if err := json.Unmarshal([]byte(`[1]`), &g); err == nil {
		t.Error("a list was taken for an object")
	}
	var none *fleet.GenericMap
	if none.DeepCopy() != nil {
		t.Error("the copy of nothing is something")
	}
	ints := (&fleet.GenericMap{Data: map[string]any{"n": 1, "u": uint64(2)}}).DeepCopy()
	if diff := cmp.Diff(map[string]any{"n": 1, "u": uint64(2)}, ints.Data); diff != "" {
		t.Error(diff)
	}
}
