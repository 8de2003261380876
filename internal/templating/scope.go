package templating

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
)

// Cluster is what templates know of a cluster.
type Cluster struct {
	// Namespace and Name identify the Cluster object.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Labels and Annotations are those of the Cluster object.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Values are its spec.templateValues.
	Values map[string]any `json:"values,omitempty"`
}

// ID returns namespace/name.
func (c *Cluster) ID() string { return c.Namespace + "/" + c.Name }

// Seen returns what templates see: the cluster without the labels that are the
// machinery's own, and empty maps for those that are not there.
func (c *Cluster) Seen() map[string]any { return NewScope(c).data }

// The names under which templates find what is known.
const (
	rootNamespace   = "ClusterNamespace"
	rootName        = "ClusterName"
	rootLabels      = "ClusterLabels"
	rootAnnotations = "ClusterAnnotations"
	rootValues      = "ClusterValues"
)

// Scope is what the templates of one cluster see. Templates may change it, so
// it is made anew for each use.
type Scope struct {
	cluster *Cluster
	labels  map[string]string
	data    map[string]any
}

// NewScope returns the scope of a cluster, which it does not change.
func NewScope(cluster *Cluster) *Scope {
	labels := templateLabels(cluster.Labels)
	return &Scope{cluster: cluster, labels: labels, data: map[string]any{
		rootNamespace:   cluster.Namespace,
		rootName:        cluster.Name,
		rootLabels:      anyMap(labels),
		rootAnnotations: anyMap(cluster.Annotations),
		rootValues:      ownMap(cluster.Values),
	}}
}

// Answer returns what the scope holds at a reference, as text that is equal
// where templates see the same; "" where there is nothing.
func (s *Scope) Answer(r Reference) string {
	value, ok := s.data[r.Root]
	if below, isMap := value.(map[string]any); r.Key != "" {
		value, ok = below[r.Key], isMap && below[r.Key] != nil
	}
	if !ok {
		return ""
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "" // what came as JSON can be written as JSON
	}
	return string(text)
}

// Roots returns references to all that a scope holds.
func Roots() []Reference {
	return []Reference{{Root: rootAnnotations}, {Root: rootLabels}, {Root: rootName}, {Root: rootNamespace}, {Root: rootValues}}
}

func isRoot(name string) bool { return slices.Contains(Roots(), Reference{Root: name}) }

// anyMap makes the maps that the functions get, hasKey and dict work on.
func anyMap(in map[string]string) map[string]any {
	out := make(map[string]any, len(in))
	for key, value := range in {
		out[key] = value
	}
	return out
}

// ownMap copies the values of a cluster, so that set and unset in a template
// change nothing for others.
func ownMap(in map[string]any) map[string]any {
	out := maps.Clone(in)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range out {
		out[key] = own(value)
	}
	return out
}

// own copies a value. Whole numbers become integers, which print as people
// write them: 1000000 and not 1e+06.
func own(value any) any {
	const exact = 1 << 53
	switch v := value.(type) {
	case map[string]any:
		return ownMap(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = own(v[i])
		}
		return out
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < exact {
			return int64(v)
		}
	}
	return value
}

// templateLabels leaves out the labels that are the machinery's own.
func templateLabels(labels map[string]string) map[string]string {
	out := make(map[string]string, len(labels))
	for key, value := range labels {
		own := strings.HasPrefix(key, "fleet.cattle.io/") || strings.HasPrefix(key, "management.cattle.io/")
		foreign := strings.Contains(key, "cattle.io") || strings.Contains(key, "kubectl.kubernetes.io/")
		if own || !foreign {
			out[key] = value
		}
	}
	return out
}
