package status_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-sh/flotilla/internal/status"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func from(repo string) status.Parent {
	return status.Parent{Kind: status.KindGitRepo, Name: ws(repo)}
}

// modifier changes a deployment that is ready.
type modifier func(*fleet.BundleDeployment)

// deployment makes a ready deployment of bundle ws/<bundle> on cluster
// ws/<cluster>, from GitRepo ws/repo.
func deployment(bundle, cluster string, change ...modifier) *fleet.BundleDeployment {
	bd := &fleet.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: bundle, Namespace: "cluster-" + cluster, Labels: map[string]string{
			fleet.BundleLabel: bundle, fleet.BundleNamespaceLabel: "ws",
			fleet.ClusterLabel: cluster, fleet.ClusterNamespaceLabel: "ws",
			fleet.RepoLabel: "repo",
		}},
		Spec: fleet.BundleDeploymentSpec{DeploymentID: "new", StagedDeploymentID: "new"},
		Status: fleet.BundleDeploymentStatus{
			AppliedDeploymentID: "new", Ready: true, NonModified: true,
			ResourceCounts: fleet.ResourceCounts{Ready: 2, DesiredReady: 2},
		},
	}
	for _, m := range change {
		m(bd)
	}
	return bd
}

func unapplied(bd *fleet.BundleDeployment)     { bd.Status.AppliedDeploymentID = "old" }
func unready(bd *fleet.BundleDeployment)       { bd.Status.Ready = false }
func staged(bd *fleet.BundleDeployment)        { bd.Spec.StagedDeploymentID = "newer" }
func nothingStaged(bd *fleet.BundleDeployment) { bd.Spec.StagedDeploymentID = "" }
func drifted(bd *fleet.BundleDeployment)       { bd.Status.NonModified = false }

// says sets a condition that is False.
func says(condition, message string) modifier {
	return func(bd *fleet.BundleDeployment) {
		bd.Status.Conditions = append(bd.Status.Conditions,
			fleet.Condition{Type: condition, Status: metav1.ConditionFalse, Message: message})
	}
}

func failing(message string) modifier {
	return func(bd *fleet.BundleDeployment) {
		unapplied(bd)
		says(fleet.ConditionDeployed, message)(bd)
	}
}

func modifiedBy(m ...fleet.ModifiedStatus) modifier {
	return func(bd *fleet.BundleDeployment) {
		drifted(bd)
		bd.Status.ModifiedStatus = m
	}
}

func unhealthy(n ...fleet.NonReadyStatus) modifier {
	return func(bd *fleet.BundleDeployment) {
		unready(bd)
		bd.Status.NonReadyStatus = n
	}
}

func ws(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ws", Name: name} }

func numbered(prefix string, i int) string { return fmt.Sprintf("%s%05d", prefix, i) }
