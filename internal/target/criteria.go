package target

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flotilla-sh/flotilla/internal/fault"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// ReasonInvalidSelector is the reason of errors in selectors.
const ReasonInvalidSelector = "InvalidSelector"

// displayName is the label under which Rancher users know a cluster.
const displayName = "management.cattle.io/cluster-display-name"

// criteria are compiled selection criteria: all that are given must hold, and
// where none is given nothing matches.
type criteria struct {
	name     string
	selector labels.Selector
	group    string
	groups   labels.Selector
}

// compile makes criteria of t. Its error says which selector is wrong.
func compile(t fleet.GitTarget) (criteria, error) {
	selector, err := compileSelector("clusterSelector", t.ClusterSelector)
	groups, groupsErr := compileSelector("clusterGroupSelector", t.ClusterGroupSelector)
	return criteria{
		name: t.ClusterName, selector: selector,
		group: t.ClusterGroup, groups: groups,
	}, errors.Join(err, groupsErr)
}

func compileSelector(field string, s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return nil, nil
	}
	return Selector(field, s)
}

// Selector compiles a selector; an absent one selects nothing. An invalid one is
// an error that begins with what it is of: nobody can say what it was to select,
// so nothing may be decided as if it selected nothing.
func Selector(of string, s *metav1.LabelSelector) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil, fault.Stall(ReasonInvalidSelector, fmt.Errorf("%s: %w", of, err))
	}
	return selector, nil
}

// Match tells whether the criteria select cluster.
func (c *criteria) Match(cluster *Cluster) bool {
	byGroup := c.group != "" || c.groups != nil
	if c.name == "" && c.selector == nil && !byGroup {
		return false
	}
	if c.name != "" && c.name != cluster.Name && c.name != cluster.Labels[displayName] {
		return false
	}
	if c.selector != nil && !c.selector.Matches(labels.Set(cluster.Labels)) {
		return false
	}
	return !byGroup || slices.ContainsFunc(cluster.Groups, c.matchGroup)
}

// asksFor tells whether a cluster of group g may be selected for being in it.
func (c *criteria) asksFor(g Group) bool {
	return (c.group != "" || c.groups != nil) && c.matchGroup(g)
}

// matchGroup wants one group to meet both criteria.
func (c *criteria) matchGroup(g Group) bool {
	if c.group != "" && c.group != g.Name {
		return false
	}
	return c.groups == nil || c.groups.Matches(labels.Set(g.Labels))
}
