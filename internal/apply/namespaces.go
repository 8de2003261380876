package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// guardedNamespaces are never deleted, whatever a bundle says.
var guardedNamespaces = []string{
	"default", "cattle-fleet-system", "cattle-fleet-local-system", "cattle-fleet-clusters-system", "cattle-system",
	"fleet-system", "fleet-local", "fleet-default",
}

// guarded tells whether a namespace is never deleted.
func guarded(name string, o Options) bool {
	return strings.HasPrefix(name, "kube-") || name == o.AgentNamespace || slices.Contains(guardedNamespaces, name)
}

// WithNamespaces puts the namespaces that the bundle deploys into at the front
// of its inventory, which is removed from its end, so that they can go with it.
// Those that may not are not added.
func (inv Inventory) WithNamespaces(o Options) Inventory {
	if !o.DeleteNamespaces || o.KeepAll {
		return inv
	}
	names := []string{o.Namespace, o.DefaultNamespace}
	for _, e := range inv {
		names = append(names, e.Namespace)
	}
	slices.Sort(names)
	known := inv.index()
	var spaces Inventory
	for _, name := range slices.Compact(names) {
		ref := Ref{Version: "v1", Kind: "Namespace", Name: name}
		if _, has := known[ref.Identity()]; name != "" && !has && !guarded(name, o) {
			spaces = append(spaces, Entry{Ref: ref, Found: true})
		}
	}
	return append(spaces, inv...)
}

// namespaceFacts are what the removal of a namespace depends on.
type namespaceFacts struct {
	head *metav1.PartialObjectMetadata
	// found is true where it was there before the bundle, as far as is known.
	found bool
	// held are the objects that were kept, now or earlier.
	held []Ref
}

// namespaceStays tells whether a namespace is kept although it was asked to be
// deleted: something that is kept is in it, another bundle has objects there,
// or it was not made for this bundle and something else lives in it.
func (e *Engine) namespaceStays(ctx context.Context, d Deployment, f namespaceFacts) (bool, error) {
	name := f.head.Name
	if guarded(name, d.Options) || d.tenant(name) != "" {
		return true, nil
	}
	if keeps, err := e.keeps(ctx, name, f.held); keeps || err != nil {
		return true, err
	}
	if !f.found || f.head.Annotations[CreatedAnnotation] == d.Owner.Bundle {
		return false, nil
	}
	return e.inhabited(ctx, name)
}

// keeps tells whether one of the objects that were kept is in a namespace, and
// still there.
func (e *Engine) keeps(ctx context.Context, namespace string, held []Ref) (bool, error) {
	for _, ref := range held {
		if ref.Namespace != namespace {
			continue
		}
		_, err := e.client.Head(ctx, ref)
		if err == nil {
			return true, nil
		}
		if !IsNoKind(err) && !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("look whether %s, which is kept, is in the namespace: %w", ref, err)
		}
	}
	return false, nil
}

// inhabited tells whether somebody has put an object into a namespace.
func (e *Engine) inhabited(ctx context.Context, namespace string) (bool, error) {
	kinds, err := e.client.Kinds.Namespaced(ctx)
	if err != nil {
		return false, err
	}
	for _, kind := range kinds {
		if kind.Resource.Resource == "events" {
			continue
		}
		list, err := e.client.Metadata.Resource(kind.Resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 20})
		if apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("look what else is in the namespace: list %s: %w", kind.Resource.Resource, err)
		}
		if list.Continue != "" || slices.ContainsFunc(list.Items, func(o metav1.PartialObjectMetadata) bool { return livesHere(kind, &o) }) {
			return true, nil
		}
	}
	return false, nil
}

// livesHere tells whether an object is more than what every namespace has, and
// more than what goes with another object.
func livesHere(kind Kind, o *metav1.PartialObjectMetadata) bool {
	switch {
	case o.DeletionTimestamp != nil, len(o.OwnerReferences) > 0:
		return false
	case kind.Resource.Resource == "serviceaccounts" && o.Name == "default",
		kind.Resource.Resource == "configmaps" && o.Name == "kube-root-ca.crt":
		return false
	}
	return true
}

// remaining says what a namespace that is being deleted still contains, in the
// words of its cluster.
func (e *Engine) remaining(ctx context.Context, ref Ref) string {
	live, err := e.client.Get(ctx, ref)
	if err != nil {
		return ""
	}
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	var parts []string
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		message, _ := condition["message"].(string)
		if condition["status"] == "True" && message != "" {
			parts = append(parts, message)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, "; ")
}
