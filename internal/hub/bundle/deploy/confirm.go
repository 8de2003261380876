package deploy

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/deployment"
	"github.com/flotilla-sh/flotilla/internal/hub/groups"
	"github.com/flotilla-sh/flotilla/internal/hub/removal"
	"github.com/flotilla-sh/flotilla/internal/reconcile"
	"github.com/flotilla-sh/flotilla/internal/target"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// selecting are the kinds that decide which clusters a bundle targets. While
// one of them is being deleted as a whole, that a cluster is not targeted any
// more proves nothing.
var selecting = []string{"bundles", "clusters", "clustergroups", "bundlenamespacemappings"}

// readers bounds the reads side by side that confirm the marks of one plan.
const readers = 16

// confirm reads once more, past the cache, everything that new removal marks
// of a plan depend on, and takes out of it those that do not stand.
func (c *Controller) confirm(ctx context.Context, bundle *fleet.Bundle, plan *deployment.Plan) error {
	if !slices.ContainsFunc(plan.Update, marks) {
		return nil
	}
	stands, err := c.targetingStands(ctx, bundle)
	if err != nil {
		return err
	}
	if stands == nil || !stands.complete() {
		plan.Update = slices.DeleteFunc(plan.Update, marks)
		return nil
	}
	return c.confirmClusters(ctx, plan, stands.selects)
}

// marks tells whether an update sets a removal mark.
func marks(u deployment.Update) bool {
	return u.New.Spec.Removal != nil && u.Old.Spec.Removal == nil
}

// targetingStands returns what the API server has of the bundle's targeting; nil
// where the Bundle is not as the decision saw it, or a kind that selects its
// clusters goes.
func (c *Controller) targetingStands(ctx context.Context, bundle *fleet.Bundle) (*selection, error) {
	for _, resource := range selecting {
		if stays, err := removal.KindStays(ctx, c.Live, resource); err != nil || !stays {
			return nil, err
		}
	}
	if stays, err := removal.NamespaceStays(ctx, c.Live, bundle.Namespace); err != nil || !stays {
		return nil, err
	}
	now := &fleet.Bundle{}
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(bundle), now)
	if err != nil || now.Generation != bundle.Generation || !now.DeletionTimestamp.IsZero() {
		return nil, client.IgnoreNotFound(err)
	}
	return c.liveSelection(ctx, now)
}

// liveSelection reads past the cache what decides who gets a bundle, but for
// the clusters themselves.
func (c *Controller) liveSelection(ctx context.Context, bundle *fleet.Bundle) (*selection, error) {
	matcher, err := target.NewMatcher(targeting(bundle))
	if err != nil {
		return nil, err
	}
	namespaces, err := namespacesOf(ctx, c.Live, bundle)
	if err != nil {
		return nil, err
	}
	found := make([]target.Groups, len(namespaces))
	reads := reconcile.AtMost(readers)
	for i, ns := range namespaces {
		reads.Do(func() (err error) {
			found[i], err = groups.In(ctx, c.Live, ns)
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		return nil, err
	}
	s := &selection{matcher: matcher, groups: make(map[string]target.Groups, len(namespaces))}
	for i, ns := range namespaces {
		s.groups[ns] = found[i]
	}
	return s, nil
}

// confirmClusters takes out of a plan the new removal marks for clusters whose
// Cluster is not there, or is being deleted, or is still wanted.
func (c *Controller) confirmClusters(ctx context.Context, plan *deployment.Plan, wanted func(*fleet.Cluster) bool) error {
	refuted := map[*fleet.BundleDeployment]bool{}
	reads := reconcile.AtMost(readers)
	var mu sync.Mutex
	for _, u := range plan.Update {
		if !marks(u) {
			continue
		}
		reads.Do(func() error {
			cluster, err := c.liveCluster(ctx, u.New)
			mu.Lock()
			defer mu.Unlock()
			refuted[u.New] = cluster == nil || wanted(cluster)
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		return err
	}
	plan.Update = slices.DeleteFunc(plan.Update, func(u deployment.Update) bool { return refuted[u.New] })
	return nil
}

// liveCluster returns the Cluster of a deployment; nil where it is not there to
// stay.
func (c *Controller) liveCluster(ctx context.Context, d *fleet.BundleDeployment) (*fleet.Cluster, error) {
	cluster := &fleet.Cluster{}
	key := client.ObjectKey{Namespace: d.Labels[fleet.ClusterNamespaceLabel], Name: d.Labels[fleet.ClusterLabel]}
	err := c.Live.Get(ctx, key, cluster)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("look whether cluster %s exists: %w", key, err)
	}
	if err != nil || !cluster.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return cluster, nil
}

// noneWanted is for a bundle that goes from everywhere.
func noneWanted(*fleet.Cluster) bool { return false }

// selection decides which clusters a bundle selects.
type selection struct {
	matcher *target.Matcher
	// groups are those of each namespace whose clusters it may go to.
	groups map[string]target.Groups
}

// selects tells whether the bundle goes to a cluster.
func (s *selection) selects(cluster *fleet.Cluster) bool {
	groups, open := s.groups[cluster.Namespace]
	v := view(cluster, groups)
	return open && s.matcher.MayMatch(&v)
}

// complete tells whether every cluster group that the bundle names is there,
// and the members of all that it asks for are known. A group that is gone may be
// lost, and an invalid selector is a slip: the clusters keep what they have.
func (s *selection) complete() bool {
	found := map[string]bool{}
	for _, groups := range s.groups {
		if groups.Unclear(s.matcher) != nil {
			return false
		}
		for _, name := range groups.Names() {
			found[name] = true
		}
	}
	return !slices.ContainsFunc(s.matcher.GroupNames(), func(name string) bool { return !found[name] })
}
