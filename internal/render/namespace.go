package render

import (
	"fmt"
	"maps"
	"strings"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// defaultNamespace is where objects go of which nobody says where.
const defaultNamespace = "default"

// Scope tells whether objects of a kind live in a namespace.
type Scope int

const (
	// UnknownScope is the scope of a kind that nobody has described.
	UnknownScope Scope = iota
	// NamespaceScope is the scope of kinds whose objects live in a namespace.
	NamespaceScope
	// ClusterScope is the scope of kinds whose objects live in none.
	ClusterScope
)

// namespacing are the rules by which the objects of a bundle get their
// namespaces. Package apply has the same for kinds that only the cluster knows.
type namespacing struct {
	// force, where set, is the namespace of every namespaced object; a
	// cluster-scoped object is an error.
	force string
	// preset is the namespace of namespaced objects that name none.
	preset string
}

// namespacingOf returns the rules that options ask for.
func namespacingOf(options *fleet.BundleDeploymentOptions) namespacing {
	return namespacing{force: options.TargetNamespace, preset: releaseNamespace(options)}
}

// releaseNamespace is the namespace of the release: what templates see and
// what objects without a namespace get.
func releaseNamespace(options *fleet.BundleDeploymentOptions) string {
	switch {
	case options.TargetNamespace != "":
		return options.TargetNamespace
	case options.DefaultNamespace != "":
		return options.DefaultNamespace
	}
	return defaultNamespace
}

// of returns the namespace that an object must have, given the one that its
// manifest names. known is false where only the cluster can tell: the kind's
// scope is unknown and the manifest names none.
func (n namespacing) of(scope Scope, named string) (namespace string, known bool) {
	switch {
	case scope == ClusterScope:
		return "", true
	case scope == UnknownScope && named == "":
		return "", false
	case n.force != "":
		return n.force, true
	case named == "":
		return n.preset, true
	}
	return named, true
}

// allows tells whether the rules allow an object of a scope at all.
func (n namespacing) allows(scope Scope) bool { return n.force == "" || scope != ClusterScope }

// refusal says why an object cannot be in the bundle.
func (n namespacing) refusal(object string) error {
	return fmt.Errorf("%s is cluster-scoped, and namespace %q is forced on this bundle: move it to another bundle, or use defaultNamespace", object, n.force)
}

func setNamespace(meta map[string]any, namespace string) {
	if namespace == "" {
		delete(meta, "namespace")
		return
	}
	meta["namespace"] = namespace
}

// inNamespace returns a copy of an object in another namespace; what it does
// not change is shared.
func inNamespace(object map[string]any, namespace string) map[string]any {
	out := maps.Clone(object)
	meta := maps.Clone(object["metadata"].(map[string]any))
	setNamespace(meta, namespace)
	out["metadata"] = meta
	return out
}

// groupKind names a kind without its version, which never decides its scope.
func groupKind(apiVersion, kind string) string {
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		group = ""
	}
	return group + "/" + kind
}

func scopeText(namespaced bool) string {
	if namespaced {
		return "namespaced"
	}
	return "cluster"
}

// scopeOf reads what scopeText wrote, or a definition's spec.scope.
func scopeOf(text string) Scope {
	switch strings.ToLower(text) {
	case "namespaced":
		return NamespaceScope
	case "cluster":
		return ClusterScope
	}
	return UnknownScope
}
