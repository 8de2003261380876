package raw

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-sh/flotilla/internal/source"
)

func FuzzOverlay(f *testing.F) {
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: {containers: [{name: a, image: x}]}}}\n"
	for _, seed := range []struct{ base, patch string }{
		{deployment, "spec: {template: {spec: {containers: [{name: a, image: new}]}}}\n"},
		{deployment, "spec: {template: {spec: {containers: [{$patch: delete, name: a}]}}}\n"},
		{deployment, "spec: {template: {spec: {$setElementOrder/containers: [{name: b}, {name: a}]}}}\n"},
		{deployment, `[{"op": "replace", "path": "/metadata/name", "value": "x"}]`},
		{deployment, `[{"op": "copy", "from": "/spec", "path": "/spec/template/spec"}]`},
		{deployment + "---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: c}\n", "kind: ConfigMap\ndata: {a: b}\n"},
		{"replicas: 1\n", "replicas: null\nmore: [1]\n"},
		{"apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 1}]}\n", "spec: {ports: [{port: 1, $patch: replace}, 3]}\n"},
		{"", "a: b\n"}, {"- a\n", "[]"}, {"text", "text"}, {"a: b\n", "- 1\n"}, {"a: &a [*a]\n", "{}"},
	} {
		f.Add([]byte(seed.base), []byte(seed.patch))
	}
	f.Fuzz(func(t *testing.T, base, patch []byte) {
		files := []source.File{{Path: "a.yaml", Data: base}, {Path: "overlays/o/a_patch.yaml", Data: patch}, {Path: "overlays/o/b.yaml", Data: patch}}
		kept := append([]byte{}, base...)
		first, err := Overlay(files, []string{"o"})
		second, errAgain := Overlay(files, []string{"o"})
		if diff := cmp.Diff(first, second); diff != "" || (err == nil) != (errAgain == nil) {
			t.Errorf("it differs from one time to the next: %v, %v, %s", err, errAgain, diff)
		}
		if !bytes.Equal(kept, base) {
			t.Error("the file itself was changed")
		}
		if err != nil {
			return
		}
		if _, err := documents(first[0].Data); err != nil {
			t.Errorf("what was patched cannot be read: %v\n%s", err, first[0].Data)
		}
		Manifests(first)
		Templates(first)
	})
}
