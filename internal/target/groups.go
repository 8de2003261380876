package target

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Groups are the cluster groups of one namespace, and know who is in them.
type Groups struct{ all []members }

// members is a group with its selector compiled, or why that cannot be.
type members struct {
	Group
	selector labels.Selector
	err      error
}

// NewGroups compiles the cluster groups of one namespace.
func NewGroups(groups []fleet.ClusterGroup) Groups {
	all := make([]members, len(groups))
	for i := range groups {
		g := &groups[i]
		all[i].Group = Group{Name: g.Name, Labels: g.Labels}
		all[i].selector, all[i].err = Selector("ClusterGroup "+g.Namespace+"/"+g.Name+": selector", g.Spec.Selector)
	}
	return Groups{all}
}

// Of returns the groups that a cluster with these labels is in. It is in none
// whose selector is invalid; Unclear tells those who ask for one.
func (g Groups) Of(cluster map[string]string) []Group {
	var out []Group
	for i := range g.all {
		if m := &g.all[i]; m.err == nil && m.selector.Matches(labels.Set(cluster)) {
			out = append(out, m.Group)
		}
	}
	return out
}

// Names are the names of all groups.
func (g Groups) Names() []string {
	names := make([]string, len(g.all))
	for i := range g.all {
		names[i] = g.all[i].Name
	}
	return names
}

// Valid tells whether everybody can say who is in which group.
func (g Groups) Valid() bool {
	return !slices.ContainsFunc(g.all, func(m members) bool { return m.err != nil })
}

// Unclear is the error of the first group whose selector is invalid and which
// the bundle asks for. Others may be broken.
func (g Groups) Unclear(bundle *Matcher) error {
	for i := range g.all {
		if m := &g.all[i]; m.err != nil && bundle.AsksFor(m.Group) {
			return m.err
		}
	}
	return nil
}
