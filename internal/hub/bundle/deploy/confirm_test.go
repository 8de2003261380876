package deploy

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/target"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func TestSelection(t *testing.T) {
	grouped := func(name string, s *metav1.LabelSelector) fleet.ClusterGroup {
		return fleet.ClusterGroup{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": name}}, Spec: fleet.ClusterGroupSpec{Selector: s},
		}
	}
	gold := &metav1.LabelSelector{MatchLabels: map[string]string{"ring": "gold"}}
	broken := &metav1.LabelSelector{MatchLabels: map[string]string{"ring": "gold "}}
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "here", Name: "c", Labels: map[string]string{"ring": "gold"}}}
	byName := fleet.BundleTarget{ClusterGroup: "g"}
	byLabel := fleet.BundleTarget{ClusterGroupSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "g"}}}
	for name, tt := range map[string]struct {
		target            fleet.BundleTarget
		restricted        string
		groups            map[string][]fleet.ClusterGroup
		complete, selects bool
	}{
		"no group":                      {fleet.BundleTarget{ClusterSelector: gold}, "", map[string][]fleet.ClusterGroup{"here": nil}, true, true},
		"a namespace that is not open":  {fleet.BundleTarget{ClusterSelector: gold}, "", map[string][]fleet.ClusterGroup{"there": nil}, true, false},
		"another ring":                  {fleet.BundleTarget{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"ring": "tin"}}}, "", map[string][]fleet.ClusterGroup{"here": nil}, true, false},
		"a group of it":                 {byName, "", map[string][]fleet.ClusterGroup{"here": {grouped("g", gold)}}, true, true},
		"a group without it":            {byName, "", map[string][]fleet.ClusterGroup{"here": {grouped("g", nil)}}, true, false},
		"a group that is not there":     {byName, "", map[string][]fleet.ClusterGroup{"here": {grouped("h", gold)}}, false, false},
		"a group with a slip":           {byName, "", map[string][]fleet.ClusterGroup{"here": {grouped("g", broken)}}, false, false},
		"a group by label with a slip":  {byLabel, "", map[string][]fleet.ClusterGroup{"here": {grouped("g", broken)}}, false, false},
		"a slip in somebody's group":    {byLabel, "", map[string][]fleet.ClusterGroup{"here": {grouped("g", gold), grouped("h", broken)}}, true, true},
		"a slip in a far group":         {byName, "", map[string][]fleet.ClusterGroup{"here": {grouped("g", gold)}, "there": {grouped("g", broken)}}, false, true},
		"a restriction to a lost group": {fleet.BundleTarget{ClusterSelector: gold}, "g", map[string][]fleet.ClusterGroup{"here": nil}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := &fleet.Bundle{}
			b.Spec.Targets = []fleet.BundleTarget{tt.target}
			if tt.restricted != "" {
				b.Spec.TargetRestrictions = []fleet.BundleTargetRestriction{{ClusterGroup: tt.restricted}}
			}
			m, err := target.NewMatcher(targeting(b))
			if err != nil {
				t.Fatal(err)
			}
			s := &selection{matcher: m, groups: map[string]target.Groups{}}
			for ns, groups := range tt.groups {
				s.groups[ns] = target.NewGroups(groups)
			}
			if s.complete() != tt.complete || s.selects(cluster) != tt.selects {
				t.Errorf("complete %v, selects %v", s.complete(), s.selects(cluster))
			}
		})
	}
}
