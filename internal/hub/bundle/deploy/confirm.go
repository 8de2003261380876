package deploy

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/deployment"
	"github.com/flotilla-sh/flotilla/internal/hub/removal"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// selecting are the kinds that decide which clusters a bundle targets. While
// one of them is being deleted as a whole, that a cluster is not targeted any
// more proves nothing.
var selecting = []string{"bundles", "clusters", "clustergroups", "bundlenamespacemappings"}

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
	if !stands {
		plan.Update = slices.DeleteFunc(plan.Update, marks)
		return nil
	}
	return c.confirmClusters(ctx, plan)
}

// marks tells whether an update sets a removal mark.
func marks(u deployment.Update) bool {
	return u.New.Spec.Removal != nil && u.Old.Spec.Removal == nil
}

// targetingStands tells whether the Bundle is as the decision saw it and every
// kind and group that selects its clusters is there.
func (c *Controller) targetingStands(ctx context.Context, bundle *fleet.Bundle) (bool, error) {
	for _, resource := range selecting {
		if stays, err := removal.KindStays(ctx, c.Live, resource); err != nil || !stays {
			return false, err
		}
	}
	if stays, err := removal.NamespaceStays(ctx, c.Live, bundle.Namespace); err != nil || !stays {
		return false, err
	}
	now := &fleet.Bundle{}
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(bundle), now)
	if err != nil || now.Generation != bundle.Generation || !now.DeletionTimestamp.IsZero() {
		return false, client.IgnoreNotFound(err)
	}
	return c.groupsExist(ctx, now)
}

// groupsExist tells whether every cluster group that a target names exists. One
// that is gone may be lost: the clusters keep what they have.
func (c *Controller) groupsExist(ctx context.Context, bundle *fleet.Bundle) (bool, error) {
	namespaces, err := c.namespaces(ctx, bundle)
	if err != nil {
		return false, err
	}
	found := map[string]bool{"": true}
	for _, ns := range namespaces {
		groups := &fleet.ClusterGroupList{}
		if err := c.Live.List(ctx, groups, client.InNamespace(ns)); err != nil {
			return false, fmt.Errorf("list cluster groups: %w", err)
		}
		for i := range groups.Items {
			found[groups.Items[i].Name] = true
		}
	}
	for i := range bundle.Spec.Targets {
		if !found[bundle.Spec.Targets[i].ClusterGroup] {
			return false, nil
		}
	}
	return true, nil
}

// confirmClusters takes out of a plan the new removal marks for clusters whose
// Cluster is not there, or is being deleted.
func (c *Controller) confirmClusters(ctx context.Context, plan *deployment.Plan) error {
	kept := plan.Update[:0]
	for _, u := range plan.Update {
		if marks(u) {
			stays, err := c.clusterStays(ctx, u.New)
			if err != nil {
				return err
			}
			if !stays {
				continue
			}
		}
		kept = append(kept, u)
	}
	plan.Update = kept
	return nil
}

func (c *Controller) clusterStays(ctx context.Context, d *fleet.BundleDeployment) (bool, error) {
	cluster := &metav1.PartialObjectMetadata{}
	cluster.SetGroupVersionKind(fleet.SchemeGroupVersion.WithKind("Cluster"))
	key := client.ObjectKey{Namespace: d.Labels[fleet.ClusterNamespaceLabel], Name: d.Labels[fleet.ClusterLabel]}
	err := c.Live.Get(ctx, key, cluster)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("look whether cluster %s exists: %w", key, err)
	}
	return err == nil && cluster.DeletionTimestamp.IsZero(), nil
}
