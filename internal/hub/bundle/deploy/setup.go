package deploy

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-sh/flotilla/internal/hub/fair"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// bundleIndex indexes deployments by their bundle, namespace/name.
const bundleIndex = "flotilla.sh/bundle"

// bundleOf returns the bundle of a deployment.
func bundleOf(obj client.Object) types.NamespacedName {
	l := obj.GetLabels()
	return types.NamespacedName{Namespace: l[fleet.BundleNamespaceLabel], Name: l[fleet.BundleLabel]}
}

// Setup adds the controller to a manager.
func (c *Controller) Setup(ctx context.Context, mgr ctrl.Manager) error {
	index := func(obj client.Object) []string { return []string{bundleOf(obj).String()} }
	if err := mgr.GetFieldIndexer().IndexField(ctx, &fleet.BundleDeployment{}, bundleIndex, index); err != nil {
		return err
	}
	changes, err := c.follow(ctx, mgr)
	if err != nil {
		return err
	}
	moved := builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))
	return ctrl.NewControllerManagedBy(mgr).
		Named("bundle-deploy").
		WithOptions(fair.Options()).
		For(&fleet.Bundle{}, moved).
		Watches(&fleet.BundleDeployment{}, gathered(ofDeployment), builder.WithPredicates(deploymentChanges())).
		Watches(&fleet.Cluster{}, c.clusterEvents()).
		Watches(&corev1.ConfigMap{}, c.reportEvents()).
		Watches(&fleet.ClusterGroup{}, gathered(c.bundlesNear), moved).
		Watches(&fleet.BundleNamespaceMapping{}, gathered(c.bundlesNear)).
		WatchesMetadata(&corev1.Namespace{}, c.namespaceEvents()).
		Watches(&fleet.Policy{}, gathered(c.bundlesNear)).
		Watches(&fleet.GitRepoRestriction{}, gathered(c.bundlesNear)).
		WatchesMetadata(&corev1.Secret{}, gathered(c.bundlesAt)).
		WatchesRawSource(changes).
		Complete(c)
}
