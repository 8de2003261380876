package deploy

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// BundleIndex indexes deployments by their bundle, namespace/name.
const BundleIndex = "flotilla.sh/bundle"

// bundleOf returns the bundle of a deployment.
func bundleOf(obj client.Object) types.NamespacedName {
	l := obj.GetLabels()
	return types.NamespacedName{Namespace: l[fleet.BundleNamespaceLabel], Name: l[fleet.BundleLabel]}
}

// Setup adds the controller to a manager.
func (c *Controller) Setup(ctx context.Context, mgr ctrl.Manager) error {
	index := func(obj client.Object) []string { return []string{bundleOf(obj).String()} }
	if err := mgr.GetFieldIndexer().IndexField(ctx, &fleet.BundleDeployment{}, BundleIndex, index); err != nil {
		return err
	}
	toAll := handler.EnqueueRequestsFromMapFunc(c.bundlesNear)
	return ctrl.NewControllerManagedBy(mgr).
		Named("bundle-deploy").
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		For(&fleet.Bundle{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		Watches(&fleet.BundleDeployment{}, handler.EnqueueRequestsFromMapFunc(ofDeployment), builder.WithPredicates(deploymentChanges())).
		Watches(&fleet.Cluster{}, toAll, builder.WithPredicates(clusterChanges())).
		Watches(&fleet.ClusterGroup{}, toAll, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		Watches(&fleet.BundleNamespaceMapping{}, toAll).
		Watches(&fleet.Policy{}, toAll).
		Watches(&fleet.GitRepoRestriction{}, toAll).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(c.bundlesOfReport)).
		Complete(c)
}

func ofDeployment(_ context.Context, obj client.Object) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: bundleOf(obj)}}
}

// bundlesNear maps a cluster, group or mapping to the bundles of its namespace
// and of those that mappings connect with it.
func (c *Controller) bundlesNear(ctx context.Context, obj client.Object) []ctrl.Request {
	namespaces := map[string]bool{obj.GetNamespace(): true}
	mappings := &fleet.BundleNamespaceMappingList{}
	if err := c.Client.List(ctx, mappings); err == nil {
		for i := range mappings.Items {
			namespaces[mappings.Items[i].Namespace] = true
		}
	}
	var out []ctrl.Request
	for ns := range namespaces {
		bundles := &fleet.BundleList{}
		if err := c.Client.List(ctx, bundles, client.InNamespace(ns), client.UnsafeDisableDeepCopy); err != nil {
			continue
		}
		for i := range bundles.Items {
			out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&bundles.Items[i])})
		}
	}
	return out
}

// bundlesOfReport maps an agent's report to the bundles near its cluster.
func (c *Controller) bundlesOfReport(ctx context.Context, obj client.Object) []ctrl.Request {
	ns := obj.GetLabels()[fleet.ClusterNamespaceLabel]
	if obj.GetName() != fleet.CapabilitiesName || ns == "" {
		return nil
	}
	return c.bundlesNear(ctx, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns}})
}

// deploymentChanges passes what this controller must answer: a deployment that
// came, went or was changed, or whose removal the agent reported. The other
// status updates are the summaries' business.
func deploymentChanges() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*fleet.BundleDeployment), e.ObjectNew.(*fleet.BundleDeployment)
			return before.Generation != after.Generation ||
				before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
				!equality.Semantic.DeepEqual(before.Status.RemovalState, after.Status.RemovalState)
		},
	}
}

// clusterChanges passes changes of a cluster that targeting can see.
func clusterChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*fleet.Cluster), e.ObjectNew.(*fleet.Cluster)
		return before.Generation != after.Generation ||
			before.Status.Namespace != after.Status.Namespace ||
			!maps.Equal(before.Labels, after.Labels) ||
			!maps.Equal(before.Annotations, after.Annotations)
	}}
}
