package effect

import (
	"maps"
	"slices"
	"strings"
)

// reserved are labels and annotations that no bundle sets on its namespace, or
// where they end in a slash, all that begin so: what the API server goes by,
// what the cluster's administrator allows pods to do, and our own marks.
var reserved = []string{"kubernetes.io/metadata.name", "pod-security.kubernetes.io/", "flotilla.sh/"}

// OnNamespace returns those of namespaceLabels or namespaceAnnotations that are
// set.
func OnNamespace(wanted map[string]string) map[string]string {
	out := maps.Clone(wanted)
	maps.DeleteFunc(out, func(key, _ string) bool { return isReserved(key) })
	return out
}

// reservedOf returns those that have no effect, sorted.
func reservedOf(wanted map[string]string) []string {
	return slices.Sorted(func(yield func(string) bool) {
		for key := range wanted {
			if isReserved(key) && !yield(key) {
				return
			}
		}
	})
}

func isReserved(key string) bool {
	return slices.ContainsFunc(reserved, func(r string) bool {
		return key == r || strings.HasSuffix(r, "/") && strings.HasPrefix(key, r)
	})
}
