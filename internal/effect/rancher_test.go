package effect_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/effect"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func TestTheAgentOfRancherFleetIsHeld(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(b *fleet.Bundle)
		want   bool
	}{
		"as it is made":       {func(*fleet.Bundle) {}, true},
		"of a GitRepo":        {func(b *fleet.Bundle) { b.Labels = map[string]string{fleet.RepoLabel: "x"} }, false},
		"of a HelmOp":         {func(b *fleet.Bundle) { b.Labels = map[string]string{fleet.HelmOpLabel: "x"} }, false},
		"another name":        {func(b *fleet.Bundle) { b.Name = "agents" }, false},
		"without a selector":  {func(b *fleet.Bundle) { b.Spec.Targets[0].ClusterSelector = nil }, false},
		"for other clusters":  {func(b *fleet.Bundle) { b.Spec.Targets[0].ClusterSelector.MatchExpressions[0].Key = "env" }, false},
		"without any targets": {func(b *fleet.Bundle) { b.Spec.Targets = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-default", Name: "fleet-agent-c1"}}
			b.Spec.Targets = []fleet.BundleTarget{{ClusterName: "c1", ClusterSelector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "fleet.cattle.io/non-managed-agent", Operator: metav1.LabelSelectorOpDoesNotExist}},
			}}}
			tt.change(b)
			if got := effect.HoldsBundle(b); (got != "") != tt.want {
				t.Errorf("got %q", got)
			}
		})
	}
}
