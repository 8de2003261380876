package deploy

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-sh/flotilla/internal/hub/groups"
	"github.com/flotilla-sh/flotilla/internal/reconcile"
	"github.com/flotilla-sh/flotilla/internal/target"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// gatherFor is how long events beside those of a bundle itself are gathered: a
// look at a bundle costs the more the more clusters it has, and a hundred
// clusters that come, or report, within a moment are worth one.
const gatherFor = 300 * time.Millisecond

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// gathered enqueues after a while what an object maps to. The first list says
// nothing that the bundles on it do not say themselves.
func gathered(bundles func(context.Context, client.Object) ([]ctrl.Request, error)) handler.EventHandler {
	add := func(ctx context.Context, q queue, obj client.Object) {
		reconcile.Persist(ctx, func() error {
			found, err := bundles(ctx, obj)
			for _, r := range found {
				q.AddAfter(r, gatherFor)
			}
			return err
		})
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList {
				add(ctx, q, e.Object)
			}
		},
		UpdateFunc:  func(ctx context.Context, e event.UpdateEvent, q queue) { add(ctx, q, e.ObjectNew) },
		DeleteFunc:  func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, e.Object) },
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q queue) { add(ctx, q, e.Object) },
	}
}

func ofDeployment(_ context.Context, obj client.Object) ([]ctrl.Request, error) {
	return []ctrl.Request{{NamespacedName: bundleOf(obj)}}, nil
}

// deploymentChanges passes what this controller must answer: a deployment that
// went or was changed, or whose removal the agent reported. The other status
// updates are the summaries' business.
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

// clusterEvents maps a cluster that came, went or changed to the bundles that
// may give it something else now.
func (c *Controller) clusterEvents() handler.EventHandler {
	look := func(ctx context.Context, q queue, before, after *fleet.Cluster) {
		reconcile.Persist(ctx, func() error { return c.enqueueAffected(ctx, q, before, after) })
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList {
				look(ctx, q, nil, e.Object.(*fleet.Cluster))
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, after := e.ObjectOld.(*fleet.Cluster), e.ObjectNew.(*fleet.Cluster)
			if targetingSees(before, after) {
				look(ctx, q, before, after)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			look(ctx, q, e.Object.(*fleet.Cluster), nil)
		},
	}
}

// targetingSees tells whether two versions of a cluster differ in what
// targeting looks at; most changes are of the status alone.
func targetingSees(before, after *fleet.Cluster) bool {
	return before.Generation != after.Generation ||
		registered(before) != registered(after) ||
		!maps.Equal(before.Labels, after.Labels) ||
		!maps.Equal(before.Annotations, after.Annotations)
}

// reportEvents maps an agent's report of what its cluster offers to the
// bundles that the cluster gets.
func (c *Controller) reportEvents() handler.EventHandler {
	look := func(ctx context.Context, q queue, obj client.Object) {
		a := obj.GetAnnotations()
		cluster := &fleet.Cluster{}
		key := client.ObjectKey{Namespace: a[fleet.ClusterNamespaceLabel], Name: a[fleet.ClusterLabel]}
		if obj.GetName() != fleet.CapabilitiesName || key.Name == "" {
			return
		}
		reconcile.Persist(ctx, func() error {
			if err := c.Client.Get(ctx, key, cluster, client.UnsafeDisableDeepCopy); err != nil {
				return client.IgnoreNotFound(err)
			}
			return c.enqueueAffected(ctx, q, nil, cluster)
		})
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList {
				look(ctx, q, e.Object)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if !maps.Equal(e.ObjectOld.(*corev1.ConfigMap).Data, e.ObjectNew.(*corev1.ConfigMap).Data) {
				look(ctx, q, e.ObjectNew)
			}
		},
	}
}

// enqueueAffected enqueues the bundles that the change of a cluster from before
// to after, of which one may be nil, can affect.
func (c *Controller) enqueueAffected(ctx context.Context, q queue, before, after *fleet.Cluster) error {
	was, err := c.viewOf(ctx, before)
	if err != nil {
		return err
	}
	is, err := c.viewOf(ctx, after)
	if err != nil || was == nil && is == nil {
		return err
	}
	one := after
	if one == nil {
		one = before
	}
	near, err := c.near(ctx, one.Namespace)
	for _, bundle := range near {
		matcher, err := target.NewMatcher(targeting(bundle))
		// Values in a Secret may have templates that nobody sees here.
		if err != nil || bundle.Spec.ValuesHash != "" || matcher.Affected(was, is) {
			q.AddAfter(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(bundle)}, gatherFor)
		}
	}
	return err
}

// viewOf is what targeting sees of a cluster; nil for one that is not
// registered.
func (c *Controller) viewOf(ctx context.Context, cluster *fleet.Cluster) (*target.Cluster, error) {
	if cluster == nil || !registered(cluster) {
		return nil, nil //nolint:nilnil // most clusters are there, and many changes have one side alone
	}
	groups, err := groups.In(ctx, c.Client, cluster.Namespace)
	if err != nil {
		return nil, err
	}
	v := view(cluster, groups)
	return &v, nil
}

// bundlesNear maps an object to all bundles that may select clusters of its
// namespace.
func (c *Controller) bundlesNear(ctx context.Context, obj client.Object) ([]ctrl.Request, error) {
	near, err := c.near(ctx, obj.GetNamespace())
	out := make([]ctrl.Request, len(near))
	for i, bundle := range near {
		out[i].NamespacedName = client.ObjectKeyFromObject(bundle)
	}
	return out, err
}

// near returns the bundles of a namespace and of those that mappings connect
// with others, as the cache has them.
func (c *Controller) near(ctx context.Context, namespace string) ([]*fleet.Bundle, error) {
	namespaces := map[string]bool{namespace: true}
	mappings := &fleet.BundleNamespaceMappingList{}
	if err := c.Client.List(ctx, mappings, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	for i := range mappings.Items {
		namespaces[mappings.Items[i].Namespace] = true
	}
	var out []*fleet.Bundle
	for ns := range namespaces {
		bundles := &fleet.BundleList{}
		if err := c.Client.List(ctx, bundles, client.InNamespace(ns), client.UnsafeDisableDeepCopy); err != nil {
			return out, err
		}
		for i := range bundles.Items {
			out = append(out, &bundles.Items[i])
		}
	}
	return out, nil
}

// bundlesAt maps a Secret with a registry to the bundles whose content goes
// there.
func (c *Controller) bundlesAt(ctx context.Context, obj client.Object) ([]ctrl.Request, error) {
	list := &fleet.BundleList{}
	if err := c.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var out []ctrl.Request
	for i := range list.Items {
		if c.Registries.Key(&list.Items[i]) == client.ObjectKeyFromObject(obj) {
			out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out, nil
}
