package target

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/fault"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func TestGroups(t *testing.T) {
	group := func(name string, selector *metav1.LabelSelector) fleet.ClusterGroup {
		return fleet.ClusterGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: name, Labels: map[string]string{"is": name}}, Spec: fleet.ClusterGroupSpec{Selector: selector},
		}
	}
	env := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"env": value}}
	}
	groups := NewGroups([]fleet.ClusterGroup{
		group("none", nil), group("all", &metav1.LabelSelector{}), group("slip", env("no value ")), group("prod", env("prod")),
	})
	for name, tt := range map[string]struct {
		labels map[string]string
		want   []Group
	}{
		"no labels": {nil, []Group{{"all", map[string]string{"is": "all"}}}},
		"some":      {map[string]string{"env": "prod"}, []Group{{"all", map[string]string{"is": "all"}}, {"prod", map[string]string{"is": "prod"}}}},
	} {
		if diff := cmp.Diff(tt.want, groups.Of(tt.labels)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if diff := cmp.Diff([]string{"none", "all", "slip", "prod"}, groups.Names()); diff != "" {
		t.Error(diff)
	}
	if groups.Valid() || !NewGroups(nil).Valid() {
		t.Error("who is valid?")
	}
	for name, tt := range map[string]struct {
		asks fleet.BundleTarget
		want bool
	}{
		"another": {fleet.BundleTarget{ClusterGroup: "prod"}, false},
		"it":      {fleet.BundleTarget{ClusterGroup: "slip"}, true},
		"its label": {fleet.BundleTarget{ClusterGroupSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"is": "slip"}}}, true},
	} {
		m, err := NewMatcher(Bundle{Spec: fleet.BundleSpec{Targets: []fleet.BundleTarget{tt.asks}}})
		if err != nil {
			t.Fatal(err)
		}
		err = groups.Unclear(m)
		if (err != nil) != tt.want || err != nil && fault.ReasonOf(err, "") != ReasonInvalidSelector {
			t.Errorf("who asks for %s: %v", name, err)
		}
	}
}
