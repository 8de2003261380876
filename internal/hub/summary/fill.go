package summary

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/reconcile"
	"github.com/flotilla-sh/flotilla/internal/status"
	"github.com/flotilla-sh/flotilla/internal/target"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// shallow returns a copy of an object that fill may change: fill replaces
// fields of the status and touches the conditions only.
func shallow(obj client.Object) client.Object {
	var next reconcile.Conditioned
	switch o := obj.(type) {
	case *fleet.Bundle:
		next = ptr.To(*o)
	case *fleet.Cluster:
		next = ptr.To(*o)
	case *fleet.ClusterGroup:
		next = ptr.To(*o)
	case *fleet.GitRepo:
		next = ptr.To(*o)
	case *fleet.HelmOp:
		next = ptr.To(*o)
	}
	conditions := next.StatusConditions()
	*conditions = slices.Clone(*conditions)
	return next
}

// fill puts what the board knows into an object's status. It touches only the
// fields that this controller owns.
func (c *Controller) fill(ctx context.Context, name types.NamespacedName, obj client.Object) error {
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
		o.Status.ReadyHelmOps, o.Status.DesiredReadyHelmOps = r.ReadyHelmOps, r.DesiredReadyHelmOps
		fleet.SetCondition(&o.Status.Conditions, r.Ready, now)
	case *fleet.ClusterGroup:
		r := c.board.ClusterGroup(name)
		o.Status.ClusterCount, o.Status.NonReadyClusterCount = r.ClusterCount, r.NonReadyClusterCount
		o.Status.NonReadyClusters = r.NonReadyClusters
		o.Status.Summary, o.Status.Display, o.Status.ResourceCounts = r.Summary, r.Display, r.ResourceCounts
		fleet.SetCondition(&o.Status.Conditions, groupReady(o, r.Ready), now)
	case *fleet.GitRepo:
		r := c.board.GitRepo(name, o.Status.GitJobStatus)
		ready, err := c.readyOf(ctx, o, r.Ready)
		if err != nil {
			return err
		}
		fillBase(&o.Status.StatusBase, r, ready, now)
	case *fleet.HelmOp:
		r := c.board.HelmOp(name)
		ready, err := c.readyOfOp(ctx, o, r.Ready)
		if err != nil {
			return err
		}
		fillBase(&o.Status.StatusBase, r, ready, now)
	}
	return nil
}

// fillBase fills what GitRepos and HelmOps have in common.
func fillBase(s *fleet.StatusBase, r status.GitRepoRollUp, ready fleet.Condition, now time.Time) {
	s.ReadyClusters, s.DesiredReadyClusters = r.ReadyClusters, r.DesiredReadyClusters
	s.Summary, s.Display, s.ResourceCounts = r.Summary, r.Display, r.ResourceCounts
	s.Resources = r.Resources
	s.Display.Message, s.Display.Error = ready.Message, s.Display.Error || ready.Reason == fleet.ReasonError
	fleet.SetCondition(&s.Conditions, ready, now)
}

// blocker is a condition that stands before what deployments say.
type blocker struct {
	conditionType string
	bad           metav1.ConditionStatus
}

// blocked is the Ready condition that the first of the blockers makes; false
// where none does.
func blocked(conditions []fleet.Condition, by ...blocker) (fleet.Condition, bool) {
	for _, b := range by {
		if c := fleet.FindCondition(conditions, b.conditionType); c != nil && c.Status == b.bad {
			return fleet.Condition{Type: fleet.ConditionReady, Status: metav1.ConditionFalse, Reason: c.Reason, Message: c.Message}, true
		}
	}
	return fleet.Condition{}, false
}

// readyOfOp is the Ready condition of a HelmOp.
func (c *Controller) readyOfOp(ctx context.Context, op *fleet.HelmOp, deployed fleet.Condition) (fleet.Condition, error) {
	if why, ok := blocked(op.Status.Conditions, blocker{fleet.ConditionAccepted, metav1.ConditionFalse}); ok {
		return why, nil
	}
	b := &fleet.Bundle{}
	err := c.cache.Get(ctx, client.ObjectKeyFromObject(op), b, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return fleet.Condition{Type: fleet.ConditionReady, Status: metav1.ConditionUnknown, Reason: "WaitingForChart",
			Message: "the chart has not been fetched yet"}, nil
	}
	if err != nil {
		return fleet.Condition{}, fmt.Errorf("read the bundle of HelmOp %s/%s: %w", op.Namespace, op.Name, err)
	}
	if behind(b) && deployed.Status == metav1.ConditionTrue {
		return reconcile.Working("its newest version"), nil
	}
	return deployed, nil
}

// readyOf is the Ready condition of a GitRepo: what stands in the way of its
// newest commit goes before what its deployments say.
func (c *Controller) readyOf(ctx context.Context, repo *fleet.GitRepo, deployed fleet.Condition) (fleet.Condition, error) {
	why, ok := blocked(repo.Status.Conditions, blocker{fleet.ConditionAccepted, metav1.ConditionFalse},
		blocker{fleet.ConditionGitPolling, metav1.ConditionFalse}, blocker{fleet.ConditionStalled, metav1.ConditionTrue})
	if ok {
		return why, nil
	}
	if repo.Status.PollingCommit == "" || repo.Status.Commit == "" {
		return fleet.Condition{Type: fleet.ConditionReady, Status: metav1.ConditionUnknown, Reason: "WaitingForCommit",
			Message: "the repository has not been read yet"}, nil
	}
	bundles := &fleet.BundleList{}
	err := c.cache.List(ctx, bundles, client.InNamespace(repo.Namespace),
		client.MatchingLabels{fleet.RepoLabel: repo.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fleet.Condition{}, fmt.Errorf("list the bundles of GitRepo %s/%s: %w", repo.Namespace, repo.Name, err)
	}
	for i := range bundles.Items {
		if behind(&bundles.Items[i]) && deployed.Status == metav1.ConditionTrue {
			return reconcile.Working("bundle " + bundles.Items[i].Name), nil
		}
	}
	return deployed, nil
}

// groupReady is the Ready condition of a ClusterGroup: what its clusters say,
// where anybody can tell who they are.
func groupReady(g *fleet.ClusterGroup, deployed fleet.Condition) fleet.Condition {
	if _, err := target.Selector("selector", g.Spec.Selector); err != nil {
		return reconcile.Outcome(fleet.ConditionReady, err)
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
