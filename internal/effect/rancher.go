package effect

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// rancherAgent begins the name of a Bundle with the agent of Rancher Fleet; the
// name of its cluster follows.
const rancherAgent = "fleet-agent-"

// HoldsBundle says why a bundle must not be deployed to any cluster, or "".
// Rancher Fleet keeps its own agent in a Bundle for each Cluster. Beside that
// agent ours does nothing, and it would remove what its hub does not know.
func HoldsBundle(b *fleet.Bundle) string {
	if b.Labels[fleet.RepoLabel] != "" || b.Labels[fleet.HelmOpLabel] != "" ||
		!strings.HasPrefix(b.Name, rancherAgent) || !slices.ContainsFunc(b.Spec.Targets, isForManagedAgent) {
		return ""
	}
	return fmt.Sprintf("not deployed: this Bundle installs the agent of Rancher Fleet, beside which ours does nothing; delete it: kubectl -n %s delete bundles.fleet.cattle.io %s",
		b.Namespace, b.Name)
}

func isForManagedAgent(t fleet.BundleTarget) bool {
	return t.ClusterSelector != nil && slices.ContainsFunc(t.ClusterSelector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		return r.Key == fleet.NonManagedAgentLabel && r.Operator == metav1.LabelSelectorOpDoesNotExist
	})
}
