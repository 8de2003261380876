package memapi

import (
	"fmt"
	"io/fs"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-sh/flotilla/charts"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// NewHub returns a server with what the hub's charts install: its kinds and the
// namespace of contents.
func NewHub(observe func(Change)) *Server {
	s := New(observe)
	kind := s.kinds[schema.GroupResource{Group: "apiextensions.k8s.io", Resource: crds}]
	for _, crd := range definitions() {
		content := fresh(deepCopy(crd), s.nextUID())
		name, _, _ := unstructured.NestedString(content, "metadata", "name")
		s.store(kind, key{name: name}, content, Change{})
	}
	s.store(s.kinds[namespaces], key{name: fleet.ContentNamespace}, newNamespace(fleet.ContentNamespace, s.nextUID()), Change{})
	return s
}

// definitions are the hub's custom resource definitions, without their schemas.
var definitions = sync.OnceValue(func() []map[string]any {
	files, err := fs.Glob(charts.FS, "flotilla-crd/templates/*.yaml")
	if err != nil || len(files) == 0 {
		panic(fmt.Sprintf("the hub's kinds: %d files, %v", len(files), err))
	}
	out := make([]map[string]any, 0, len(files))
	for _, file := range files {
		var crd map[string]any
		raw, err := fs.ReadFile(charts.FS, file)
		if err == nil {
			err = yaml.Unmarshal(raw, &crd)
		}
		if err != nil {
			panic(fmt.Sprintf("%s: %v", file, err))
		}
		versions, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
		for _, v := range versions {
			delete(v.(map[string]any), "schema")
		}
		if err := unstructured.SetNestedSlice(crd, versions, "spec", "versions"); err != nil {
			panic(fmt.Sprintf("%s: %v", file, err))
		}
		out = append(out, crd)
	}
	return out
})
