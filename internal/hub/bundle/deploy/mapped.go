package deploy

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/flotilla-sh/flotilla/internal/reconcile"
	"github.com/flotilla-sh/flotilla/internal/target"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// namespaceEvents maps a namespace that came, or has other labels, to the
// bundles that a BundleNamespaceMapping opens it to, or closes it.
func (c *Controller) namespaceEvents() handler.EventHandler {
	look := func(ctx context.Context, q queue, before, after labels.Set) {
		reconcile.Persist(ctx, func() error { return c.enqueueMapped(ctx, q, before, after) })
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList {
				look(ctx, q, nil, e.Object.GetLabels())
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if !labels.Equals(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) {
				look(ctx, q, e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels())
			}
		},
	}
}

func (c *Controller) enqueueMapped(ctx context.Context, q queue, before, after labels.Set) error {
	mappings := &fleet.BundleNamespaceMappingList{}
	if err := c.Client.List(ctx, mappings, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range mappings.Items {
		if !turns(&mappings.Items[i], before, after) {
			continue
		}
		bundles := &fleet.BundleList{}
		if err := c.Client.List(ctx, bundles, client.InNamespace(mappings.Items[i].Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		for j := range bundles.Items {
			q.AddAfter(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&bundles.Items[j])}, gatherFor)
		}
	}
	return nil
}

// turns tells whether a mapping selects a namespace with one set of labels and
// not with the other.
func turns(m *fleet.BundleNamespaceMapping, before, after labels.Set) bool {
	selector, err := target.Selector("namespaceSelector", m.NamespaceSelector)
	return err == nil && selector.Matches(before) != selector.Matches(after)
}
