// Package register is the controller that gives each Cluster what belongs to
// it on the hub: a namespace, an identity for its agent that reads this
// namespace only, a Lease for its heartbeat and a place for its report. It
// writes status.namespace and the Processed condition of Clusters.
package register

import (
	"context"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-sh/flotilla/internal/content/kube"
	"github.com/flotilla-sh/flotilla/internal/effect"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/hub/registries"
	"github.com/flotilla-sh/flotilla/internal/hub/removal"
	"github.com/flotilla-sh/flotilla/internal/names"
	"github.com/flotilla-sh/flotilla/internal/reconcile"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// workers is how many clusters are registered at once. Most of the time of each
// is waiting: the API server looks at a new namespace, and at the rights that
// are given, for up to a tenth of a second each.
const workers = 32

// Controller registers clusters.
type Controller struct {
	Client client.Client
	// Live reads past all caches what a deletion depends on, and what they drop.
	Live client.Reader
	// Store forgets what it knows of a namespace that has to be made anew.
	Store *kube.Store
	// Registries forget which access the agent had there.
	Registries *registries.Registries
	// Hub is the identity of this hub, by which clusters tell its bundles from
	// those of another hub.
	Hub   string
	Clock clock.PassiveClock

	statuses reconcile.Written
	rivals   rivals
}

// Setup adds the controller to a manager.
func (c *Controller) Setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("cluster-register").
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: reconcile.Backoff[ctrl.Request]()}).
		For(&fleet.Cluster{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(c.clustersOf)).
		Complete(c)
}

// clustersOf maps a cluster's namespace to the Cluster, and to those that wait
// for the namespace.
func (c *Controller) clustersOf(_ context.Context, ns client.Object) []ctrl.Request {
	keys := c.rivals.of(ns.GetName())
	if owner := ownerOf(ns); owner.Name != "" {
		keys = append(keys, owner)
	}
	out := make([]ctrl.Request, len(keys))
	for i, key := range keys {
		out[i].NamespacedName = key
	}
	return out
}

// Reconcile makes what belongs to one Cluster.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &fleet.Cluster{}
	if err := c.Client.Get(ctx, req.NamespacedName, cluster); err != nil {
		c.rivals.drop(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !cluster.DeletionTimestamp.IsZero() {
		return reconcile.Result(ctx, c.finalize(ctx, cluster))
	}
	if controllerutil.AddFinalizer(cluster, fleet.Finalizer) {
		if err := c.enroll(ctx, cluster); err != nil {
			return reconcile.Result(ctx, err)
		}
	}
	if err := c.doubt(ctx, cluster); err != nil {
		return reconcile.Result(ctx, err)
	}
	patcher := c.statuses.Patcher(c.Client, cluster)
	err := c.register(ctx, cluster)
	fleet.SetCondition(&cluster.Status.Conditions, reconcile.Outcome(fleet.ConditionProcessed, err), c.Clock.Now())
	fleet.SetCondition(&cluster.Status.Conditions, effect.Condition(effect.OfCluster(&cluster.Spec)), c.Clock.Now())
	// Roll-ups write the same status. Another try costs one request; to look at
	// all again would cost one for each object.
	patchErr := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return patcher.Status(ctx, cluster) })
	if patchErr != nil {
		return reconcile.Result(ctx, patchErr)
	}
	return reconcile.Result(ctx, err)
}

// doubt takes back that a Cluster is processed whose namespace is gone, before
// it is made again: a hub that ends meanwhile would leave it half made, and the
// next one would believe that all is there.
func (c *Controller) doubt(ctx context.Context, cluster *fleet.Cluster) error {
	namespace := names.ClusterNamespace(cluster.Namespace, cluster.Name)
	stays, err := removal.NamespaceStays(ctx, c.Client, namespace)
	if err != nil || stays || !fleet.IsConditionTrue(cluster.Status.Conditions, fleet.ConditionProcessed) {
		return err
	}
	patcher := c.statuses.Patcher(c.Client, cluster)
	fleet.SetCondition(&cluster.Status.Conditions, reconcile.Outcome(fleet.ConditionProcessed,
		fault.Wait(namespaceSoon, "NamespaceGone", fmt.Errorf("namespace %s is gone; it is made again", namespace))), c.Clock.Now())
	return patcher.Status(ctx, cluster)
}

// enroll writes the finalizer. With it goes the record of who wrote which field,
// which each roll-up would pay for: a third of a Cluster's bytes, and the most
// costly part of a write. Who applied the Cluster server-side needs it to drop a
// field, so there it stays.
func (c *Controller) enroll(ctx context.Context, cluster *fleet.Cluster) error {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(fleet.SchemeGroupVersion.WithKind("Cluster"))
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(cluster), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !slices.ContainsFunc(live.ManagedFields, isApply) {
		cluster.ManagedFields = []metav1.ManagedFieldsEntry{{}}
	}
	return c.Client.Update(ctx, cluster)
}

func isApply(e metav1.ManagedFieldsEntry) bool {
	return e.Operation == metav1.ManagedFieldsOperationApply
}

func (c *Controller) register(ctx context.Context, cluster *fleet.Cluster) error {
	namespace := names.ClusterNamespace(cluster.Namespace, cluster.Name)
	stays, err := c.has(ctx, cluster, namespace)
	if fault.KindOf(err) == fault.Stalled {
		cluster.Status.Namespace = "" // which makes it no target
	}
	if err != nil {
		return err
	}
	if stays && cluster.Status.Namespace == namespace && fleet.IsConditionTrue(cluster.Status.Conditions, fleet.ConditionProcessed) {
		// All was made before; a restarted hub writes nothing.
		return c.introduce(ctx, namespace)
	}
	if err := c.ensure(ctx, cluster, namespace, stays); err != nil {
		return err
	}
	cluster.Status.Namespace = namespace
	return c.introduce(ctx, namespace)
}

// introduce writes who this hub is on an agent's Lease that says something
// else: it is older, or the hub's key was lost.
func (c *Controller) introduce(ctx context.Context, namespace string) error {
	lease := &coordinationv1.Lease{}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: fleet.AgentName}, lease)
	if err != nil || lease.Annotations[fleet.HubAnnotation] == c.Hub {
		return client.IgnoreNotFound(err)
	}
	base := lease.DeepCopy()
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[fleet.HubAnnotation] = c.Hub
	return client.IgnoreNotFound(c.Client.Patch(ctx, lease, client.MergeFrom(base)))
}

// ensure creates what is missing: the namespace, then all that is in it at
// once. What is there is left as it is: the agent writes some of it, and a
// person may have a reason for a change.
func (c *Controller) ensure(ctx context.Context, cluster *fleet.Cluster, namespace string, namespaceStays bool) error {
	if !namespaceStays {
		c.Store.ForgetNamespace(namespace)
		c.Registries.ForgetNamespace(namespace)
		if err := c.found(ctx, cluster, namespace); err != nil {
			return err
		}
	}
	objects := belongings(cluster, namespace, c.Hub)
	writes := reconcile.AtMost(len(objects))
	for _, obj := range objects {
		writes.Do(func() error { return c.create(ctx, obj) })
	}
	return writes.Wait()
}

func (c *Controller) create(ctx context.Context, obj client.Object) error {
	err := c.Client.Create(ctx, obj)
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return terminating(obj.GetNamespace())
	default:
		return fmt.Errorf("create %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
}

// finalize lets a Cluster go that was deleted by itself, together with its
// namespace on the hub. Its deployments go without a removal mark: a deleted
// record takes nothing off the cluster.
func (c *Controller) finalize(ctx context.Context, cluster *fleet.Cluster) error {
	if !fleet.IsHeld(cluster) {
		return nil
	}
	deliberate, err := removal.Deliberate(ctx, c.Live, cluster, "clusters")
	if err != nil {
		return err
	}
	if deliberate {
		// Not what the status says, which a restore may have made up.
		namespace := names.ClusterNamespace(cluster.Namespace, cluster.Name)
		if err := c.deleteNamespace(ctx, cluster, namespace); err != nil {
			return err
		}
	}
	fleet.Release(cluster)
	return client.IgnoreNotFound(c.Client.Update(ctx, cluster))
}

// deleteNamespace deletes a cluster's namespace and drops the finalizers of
// the deployments in it, which would otherwise wait for their agent. One that
// was made for another Cluster stays.
func (c *Controller) deleteNamespace(ctx context.Context, cluster *fleet.Cluster, namespace string) error {
	found, err := removal.Namespace(ctx, c.Live, namespace)
	if err != nil || found == nil || ownerOf(found) != client.ObjectKeyFromObject(cluster) {
		return err
	}
	ns := &corev1.Namespace{}
	ns.Name = namespace
	if err := c.Client.Delete(ctx, ns, client.Preconditions{UID: ptr.To(found.UID)}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete namespace %s: %w", namespace, err)
	}
	return c.releaseAll(ctx, namespace)
}
