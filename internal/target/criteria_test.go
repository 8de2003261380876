package target

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Each criterion can be absent, hold or fail; what they give together follows
// from the rule alone.
func TestEverySubsetOfCriteria(t *testing.T) {
	subject := inGroups(cluster("one", "env", "prod"),
		Group{Name: "other", Labels: map[string]string{"tier": "low"}},
		Group{Name: "edge", Labels: map[string]string{"tier": "high"}})
	const absent, holds, fails = 0, 1, 2
	for n := range 81 {
		name, sel, group, groups := n%3, n/3%3, n/9%3, n/27%3
		var target fleet.GitTarget
		target.ClusterName = []string{"", "one", "two"}[name]
		target.ClusterSelector = []*metav1.LabelSelector{nil, selector("env", "prod"), selector("env", "dev")}[sel]
		target.ClusterGroup = []string{"", "edge", "none"}[group]
		target.ClusterGroupSelector = []*metav1.LabelSelector{nil, selector("tier", "high"), selector("tier", "none")}[groups]

		want, given := true, false
		for _, state := range []int{name, sel, group, groups} {
			want = want && state != fails
			given = given || state != absent
		}
		want = want && given
		criteria, err := compile(target)
		if err != nil {
			t.Fatal(err)
		}
		if got := criteria.Match(&subject); got != want {
			t.Errorf("%+v: got %v, want %v", target, got, want)
		}
	}
}

func TestCriteria(t *testing.T) {
	for name, tt := range map[string]struct {
		target  fleet.GitTarget
		cluster Cluster
		want    bool
	}{
		"display name":                 {fleet.GitTarget{ClusterName: "Berlin"}, cluster("c-x1", displayName, "Berlin"), true},
		"empty selector, no labels":    {fleet.GitTarget{ClusterSelector: selector()}, cluster("a"), true},
		"empty group selector":         {fleet.GitTarget{ClusterGroupSelector: selector()}, inGroups(cluster("a"), Group{Name: "g"}), true},
		"group selector without group": {fleet.GitTarget{ClusterGroupSelector: selector()}, cluster("a"), false},
		"criteria of two groups": {
			fleet.GitTarget{ClusterGroup: "one", ClusterGroupSelector: selector("a", "b")},
			inGroups(cluster("a"), Group{Name: "one"}, Group{Name: "two", Labels: map[string]string{"a": "b"}}), false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			criteria, err := compile(tt.target)
			if err != nil {
				t.Fatal(err)
			}
			if got := criteria.Match(&tt.cluster); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestInvalidSelectorNamesItsPlace(t *testing.T) {
	bad := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	_, err := NewMatcher(bundleOf(fleet.BundleSpec{Targets: []fleet.BundleTarget{{Name: "ok"}, {Name: "prod", ClusterGroupSelector: bad}}}))
	want := `bundle fleet-default/web: targets[1] "prod": clusterGroupSelector: "Near" is not a valid label selector operator`
	if err == nil || !strings.HasPrefix(fmt.Sprint(err), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
