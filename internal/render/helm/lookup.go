package helm

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// recordLookups answers lookups as an empty cluster does and counts them.
type recordLookups struct{ made int }

// GetClientFor implements engine.ClientProvider.
func (p *recordLookups) GetClientFor(string, string) (dynamic.NamespaceableResourceInterface, bool, error) {
	p.made++
	return emptyCluster{}, true, nil
}

// errLookup stops a render at a lookup.
var errLookup = errors.New("looked up")

// refuseLookups fails at the first lookup, so that the template engine says
// where it stands.
type refuseLookups struct{ refused string }

// GetClientFor implements engine.ClientProvider.
func (p *refuseLookups) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	p.refused = apiVersion + " " + kind
	return nil, false, errLookup
}

// emptyCluster has no objects. The methods that the engine does not call are
// those of a nil interface.
type emptyCluster struct {
	dynamic.NamespaceableResourceInterface
}

// Namespace implements dynamic.NamespaceableResourceInterface.
func (c emptyCluster) Namespace(string) dynamic.ResourceInterface { return c }

// Get finds nothing.
func (emptyCluster) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
}

// List finds nothing.
func (emptyCluster) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
}

// needsLookup says which template makes a lookup that the result may depend
// on, or "". It renders again, each time up to the next lookup. A file that
// renders to nothing and changes no values only checks something; that it does
// so without the cluster is a warning.
func (r *run) needsLookup(texts map[string]string) string {
	checks := map[string]bool{}
	for {
		keep := func(file string) bool { return !checks[file] }
		provider := &refuseLookups{}
		_, err := r.render(only(r.chart, keep), provider)
		if err == nil || provider.refused == "" {
			return ""
		}
		places := locate(err)
		if len(places) == 0 {
			return fmt.Sprintf("the chart %s looks up %s on the cluster", r.chart.Name(), provider.refused)
		}
		file, at := places[0].file, r.place(places[len(places)-1])
		if checks[file] || r.effect(file, texts[file]) != "" || r.loaded.calls.changes(file) {
			return fmt.Sprintf("%s looks up %s on the cluster", at, provider.refused)
		}
		checks[file] = true
		r.warnings = append(r.warnings, fault.Note{
			File: at.file, Line: at.line, Message: fmt.Sprintf("it looks up %s on the cluster, only to check something: it was rendered as if there were none", provider.refused),
		})
	}
}
