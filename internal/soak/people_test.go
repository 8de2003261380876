package soak_test

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusternames "github.com/flotilla-sh/flotilla/internal/names"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// What people do, on the hub and on clusters, past all faults. The model knows
// it first: whoever watches must not take what follows for a mistake.

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.model.names.fleet, Name: name}
}

// write creates or changes a bundle on the hub.
func (w *world) write(b *bundle) {
	w.model.bundles[b.name] = b
	w.watch.note(w.model)
	if b.repo != nil {
		w.push(b.repo, false)
		return
	}
	ctx := context.Background()
	w.must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		obj := &fleet.Bundle{ObjectMeta: w.meta(b.name)}
		err := w.direct.hub.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		obj.Spec = w.model.spec(b)
		if apierrors.IsNotFound(err) {
			return w.direct.hub.Create(ctx, obj)
		}
		if err != nil {
			return err
		}
		return w.direct.hub.Update(ctx, obj)
	}))
}

// erase deletes a bundle on the hub.
func (w *world) erase(b *bundle) {
	delete(w.model.bundles, b.name)
	w.watch.note(w.model)
	if b.repo != nil {
		w.push(b.repo, false)
		return
	}
	w.must(client.IgnoreNotFound(w.direct.hub.Delete(context.Background(), &fleet.Bundle{ObjectMeta: w.meta(b.name)})))
}

// gone waits some time for a deleted bundle to be gone.
func (w *world) gone(b *bundle) bool {
	for deadline := time.Now().Add(w.pace.step); time.Now().Before(deadline); time.Sleep(w.pace.look) {
		obj := &fleet.Bundle{}
		if err := w.direct.hub.Get(context.Background(), client.ObjectKey{Namespace: w.model.names.fleet, Name: b.name}, obj); apierrors.IsNotFound(err) {
			return true
		}
	}
	return false
}

// relabel puts a cluster into another ring.
func (w *world) relabel(c *cluster, ring string) {
	c.ring = ring
	w.watch.note(w.model)
	w.must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		obj := &fleet.Cluster{}
		if err := w.direct.hub.Get(context.Background(), client.ObjectKey{Namespace: w.model.names.fleet, Name: c.name}, obj); err != nil {
			return err
		}
		obj.Labels = map[string]string{"ring": ring}
		return w.direct.hub.Update(context.Background(), obj)
	}))
}

// depart deletes the record of a cluster on the hub. The cluster keeps what it
// has.
func (w *world) depart(c *cluster) {
	c.away = true
	w.must(client.IgnoreNotFound(w.direct.hub.Delete(context.Background(), &fleet.Cluster{ObjectMeta: w.meta(c.name)})))
}

// comeBack makes the record of a cluster again, once it is gone.
func (w *world) comeBack(c *cluster, within time.Duration) bool {
	for deadline := time.Now().Add(within); ; time.Sleep(w.pace.look) {
		err := w.direct.hub.Create(context.Background(), w.record(c))
		if err == nil {
			c.away = false
			return true
		}
		if !apierrors.IsAlreadyExists(err) {
			w.must(err)
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

// record is what the hub has of a cluster.
func (w *world) record(c *cluster) *fleet.Cluster {
	meta := w.meta(c.name)
	meta.Labels = map[string]string{"ring": c.ring}
	return &fleet.Cluster{ObjectMeta: meta}
}

// known tells whether the hub has a deployment of each bundle on each of its
// clusters. What it does not know of a cluster that came back it cannot remove:
// that stays there.
func (w *world) known() bool {
	if !w.departed {
		return true
	}
	for _, c := range w.model.clusters {
		list := &fleet.BundleDeploymentList{}
		w.must(w.direct.hub.List(context.Background(), list, client.InNamespace(clusternames.ClusterNamespace(w.model.names.fleet, c.name))))
		has := map[string]bool{}
		for i := range list.Items {
			has[list.Items[i].Labels[fleet.BundleLabel]] = list.Items[i].DeletionTimestamp.IsZero()
		}
		for _, b := range w.model.on(c) {
			if c.away || !has[b.name] {
				return false
			}
		}
	}
	return true
}

// removing tells whether the hub has deployments on a cluster that are to be
// removed, or will be.
func (w *world) removing(c *cluster) bool {
	list := &fleet.BundleDeploymentList{}
	w.must(w.direct.hub.List(context.Background(), list, client.InNamespace(clusternames.ClusterNamespace(w.model.names.fleet, c.name))))
	on := w.model.on(c)
	return slices.ContainsFunc(list.Items, func(bd fleet.BundleDeployment) bool {
		return bd.Spec.Removal != nil || !slices.ContainsFunc(on, func(b *bundle) bool { return b.name == bd.Labels[fleet.BundleLabel] })
	})
}

// object returns an object on a cluster, which may not be there.
func (w *world) object(i int, name string) *corev1.ConfigMap {
	obj := &corev1.ConfigMap{}
	err := w.direct.spokes[i].Get(context.Background(), client.ObjectKey{Namespace: w.model.names.shop, Name: name}, obj)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return obj
}

// edit changes an object on a cluster by hand.
func (w *world) edit(i int, obj *corev1.ConfigMap) {
	w.must(client.IgnoreNotFound(w.direct.spokes[i].Patch(context.Background(), obj,
		client.RawPatch("application/merge-patch+json", []byte(`{"data":{"version":"edited"}}`)), client.FieldOwner("kubectl-edit"))))
}

// tear deletes an object on a cluster by hand.
func (w *world) tear(i int, obj *corev1.ConfigMap) {
	w.must(client.IgnoreNotFound(w.direct.spokes[i].Delete(context.Background(), obj)))
}

// withdraw deletes all deployments of a bundle on the hub by hand.
func (w *world) withdraw(b *bundle) {
	list := &fleet.BundleDeploymentList{}
	w.must(w.direct.hub.List(context.Background(), list, client.MatchingLabels{
		fleet.BundleLabel: b.name, fleet.BundleNamespaceLabel: w.model.names.fleet,
	}))
	for i := range list.Items {
		w.must(client.IgnoreNotFound(w.direct.hub.Delete(context.Background(), &list.Items[i])))
	}
}
