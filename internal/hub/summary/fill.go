package summary

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/reconcile"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// shallow returns a copy of an object that fill may change: fill replaces
// fields of the status and touches the conditions only.
func shallow(obj client.Object) client.Object {
	switch o := obj.(type) {
	case *fleet.Bundle:
		next := *o
		next.Status.Conditions = slices.Clone(o.Status.Conditions)
		return &next
	case *fleet.Cluster:
		next := *o
		next.Status.Conditions = slices.Clone(o.Status.Conditions)
		return &next
	case *fleet.ClusterGroup:
		next := *o
		next.Status.Conditions = slices.Clone(o.Status.Conditions)
		return &next
	case *fleet.GitRepo:
		next := *o
		next.Status.Conditions = slices.Clone(o.Status.Conditions)
		return &next
	}
	return nil
}

// fill puts what the board knows into an object's status. It touches only the
// fields that this controller owns.
func (c *Controller) fill(name types.NamespacedName, obj client.Object) {
	now := c.Clock.Now()
	switch o := obj.(type) {
	case *fleet.Bundle:
		r := c.board.Bundle(name)
		o.Status.Summary, o.Status.Display = r.Summary, r.Display
		o.Status.Unavailable = r.Summary.DesiredReady - r.Summary.Ready
		fleet.SetCondition(&o.Status.Conditions, bundleReady(o, r.Ready), now)
	case *fleet.Cluster:
		r := c.board.Cluster(name)
		o.Status.Summary, o.Status.Display, o.Status.ResourceCounts = r.Summary, r.Display, r.ResourceCounts
		o.Status.ReadyGitRepos, o.Status.DesiredReadyGitRepos = r.ReadyGitRepos, r.DesiredReadyGitRepos
		fleet.SetCondition(&o.Status.Conditions, r.Ready, now)
	case *fleet.ClusterGroup:
		r := c.board.ClusterGroup(name)
		o.Status.ClusterCount, o.Status.NonReadyClusterCount = r.ClusterCount, r.NonReadyClusterCount
		o.Status.NonReadyClusters = r.NonReadyClusters
		o.Status.Summary, o.Status.Display, o.Status.ResourceCounts = r.Summary, r.Display, r.ResourceCounts
		fleet.SetCondition(&o.Status.Conditions, r.Ready, now)
	case *fleet.GitRepo:
		r := c.board.GitRepo(name, o.Status.GitJobStatus)
		o.Status.ReadyClusters, o.Status.DesiredReadyClusters = r.ReadyClusters, r.DesiredReadyClusters
		o.Status.Summary, o.Status.Display, o.Status.ResourceCounts = r.Summary, r.Display, r.ResourceCounts
		o.Status.Resources = r.Resources
		ready := c.readyOf(o, r.Ready)
		o.Status.Display.Message, o.Status.Display.Error = ready.Message, o.Status.Display.Error || ready.Reason == fleet.ReasonError
		fleet.SetCondition(&o.Status.Conditions, ready, now)
	}
}

// readyOf is the Ready condition of a GitRepo: what stands in the way of its
// newest commit goes before what its deployments say.
func (c *Controller) readyOf(repo *fleet.GitRepo, deployed fleet.Condition) fleet.Condition {
	for _, blocking := range []struct {
		conditionType string
		bad           metav1.ConditionStatus
	}{
		{fleet.ConditionAccepted, metav1.ConditionFalse},
		{fleet.ConditionGitPolling, metav1.ConditionFalse},
		{fleet.ConditionStalled, metav1.ConditionTrue},
	} {
		c := fleet.FindCondition(repo.Status.Conditions, blocking.conditionType)
		if c != nil && c.Status == blocking.bad {
			return fleet.Condition{Type: fleet.ConditionReady, Status: metav1.ConditionFalse, Reason: c.Reason, Message: c.Message}
		}
	}
	if repo.Status.PollingCommit == "" || repo.Status.Commit == "" {
		return fleet.Condition{Type: fleet.ConditionReady, Status: metav1.ConditionUnknown, Reason: "WaitingForCommit",
			Message: "the repository has not been read yet"}
	}
	bundles := &fleet.BundleList{}
	err := c.cache.List(context.Background(), bundles, client.InNamespace(repo.Namespace),
		client.MatchingLabels{fleet.RepoLabel: repo.Name}, client.UnsafeDisableDeepCopy)
	for i := range bundles.Items {
		if err == nil && behind(&bundles.Items[i]) && deployed.Status == metav1.ConditionTrue {
			return reconcile.Working("bundle " + bundles.Items[i].Name)
		}
	}
	return deployed
}

// bundleReady is the Ready condition of a Bundle: what its deployments say,
// once they follow its newest generation.
func bundleReady(b *fleet.Bundle, deployed fleet.Condition) fleet.Condition {
	if behind(b) && deployed.Status == metav1.ConditionTrue {
		return reconcile.Working("its newest generation")
	}
	return deployed
}

// behind tells whether the deployments do not follow the newest generation yet.
func behind(b *fleet.Bundle) bool {
	return b.Status.ObservedGeneration != b.Generation && b.DeletionTimestamp.IsZero()
}
