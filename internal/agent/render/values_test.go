package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-sh/flotilla/internal/render"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func TestValuesOfCopies(t *testing.T) {
	ref := func(namespace, name string) *fleet.SecretKeySelector {
		r := &fleet.SecretKeySelector{Namespace: namespace}
		r.Name = name
		return r
	}
	from := From{
		Refs:      []fleet.ValuesFrom{{SecretKeyRef: ref("", "copied")}, {SecretKeyRef: ref("elsewhere", "copied")}},
		Namespace: "shop", Copies: []fleet.DownstreamResource{{Kind: "secret", Name: "copied"}},
	}
	parts := from.places()
	if len(parts) != 2 || !parts[0].copied || parts[1].copied {
		t.Fatalf("places: %+v", parts)
	}
	parts[1].data = map[string]any{"b": "cluster", "c": "cluster"}
	copies := []render.Object{{Kind: "Secret", Namespace: "shop", Name: "copied", JSON: []byte(
		`{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"shop","name":"copied"},"data":{"values.yaml":"YTogaHViCmI6IGh1Ygo="}}`)}}
	got, err := Values{parts: parts}.merged(copies)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"a": "hub", "b": "cluster", "c": "cluster"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := (Values{parts: parts}).merged(nil); err == nil {
		t.Error("a copy that did not come is no error")
	}
}
