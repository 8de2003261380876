// Package packing is the frame of the controllers that pack objects into
// Bundles: GitRepos and HelmOps. It says when one is packed, keeps its status,
// and lets its Bundles go before it. What is in them is up to each kind.
package packing

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/hub/bundle/write"
	"github.com/flotilla-sh/flotilla/internal/hub/fair"
	"github.com/flotilla-sh/flotilla/internal/hub/removal"
	"github.com/flotilla-sh/flotilla/internal/hub/tenancy"
	"github.com/flotilla-sh/flotilla/internal/reconcile"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// bundlesGone is how often a deleted object looks for its last Bundles.
const bundlesGone = 5 * time.Second

// Kind packs the objects of one kind.
type Kind[T reconcile.Conditioned] interface {
	// Pack makes the Bundles of an object be what it says. What it finds out on
	// the way stands in the object's status afterwards.
	Pack(ctx context.Context, obj T) error
	// Report turns the outcome into conditions.
	Report(obj T, err error)
	// Next is how soon to pack again although nothing changes; 0 for never.
	Next(obj T) time.Duration
	// Forget drops what is remembered of an object that is gone.
	Forget(key types.NamespacedName)
}

// Frame is the controller around a Kind.
type Frame[T reconcile.Conditioned] struct {
	Kind Kind[T]
	// Name is that of the controller, Resource the plural name of its kind.
	Name, Resource string
	New            func() T
	List           func() client.ObjectList
	// Owner tells whose Bundles are those of an object.
	Owner func(T) write.Owner
	// Changes passes what asks for a look at a changed object.
	Changes predicate.Predicate
	Bundles *write.Writer
	Clock   clock.PassiveClock

	statuses reconcile.Written
}

// Setup adds the controller to a manager.
func (f *Frame[T]) Setup(mgr ctrl.Manager) error {
	near := handler.EnqueueRequestsFromMapFunc(f.near)
	return ctrl.NewControllerManagedBy(mgr).
		Named(f.Name).
		WithOptions(fair.Options()).
		For(f.New(), builder.WithPredicates(f.Changes)).
		Watches(&fleet.Bundle{}, handler.EnqueueRequestsFromMapFunc(f.ownerOf), builder.WithPredicates(f.Bundles.Changes())).
		Watches(&fleet.Policy{}, near).
		Watches(&fleet.GitRepoRestriction{}, near).
		WatchesMetadata(&corev1.Secret{}, near,
			builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == fleet.OCIStorageSecret }))).
		Complete(f)
}

// ownerOf maps a Bundle to the object that it comes from.
func (f *Frame[T]) ownerOf(_ context.Context, bundle client.Object) []ctrl.Request {
	name := bundle.GetLabels()[f.Owner(f.New()).Label]
	if name == "" {
		return nil
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: bundle.GetNamespace(), Name: name}}}
}

// near maps what limits a namespace to the objects in it.
func (f *Frame[T]) near(ctx context.Context, limit client.Object) []ctrl.Request {
	list := f.List()
	if err := f.Bundles.Client.List(ctx, list, client.InNamespace(limit.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var out []ctrl.Request
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(item.(client.Object))})
		return nil
	})
	return out
}

// Reconcile makes the Bundles of one object be what it says.
func (f *Frame[T]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := f.New()
	if err := f.Bundles.Client.Get(ctx, req.NamespacedName, obj); err != nil {
		f.Kind.Forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !obj.GetDeletionTimestamp().IsZero() {
		return reconcile.Result(ctx, f.finalize(ctx, obj))
	}
	if controllerutil.AddFinalizer(obj, fleet.Finalizer) {
		if err := f.Bundles.Client.Update(ctx, obj); err != nil {
			return reconcile.Result(ctx, err)
		}
	}
	patcher := f.statuses.Patcher(f.Bundles.Client, obj)
	err := tenancy.Check(ctx, f.Bundles.Client, obj.GetNamespace())
	if err == nil {
		err = f.Kind.Pack(ctx, obj)
	}
	f.Kind.Report(obj, err)
	if patchErr := patcher.Status(ctx, obj); patchErr != nil {
		return reconcile.Result(ctx, patchErr)
	}
	if err == nil {
		return ctrl.Result{RequeueAfter: f.Kind.Next(obj)}, nil
	}
	result, err := reconcile.Result(ctx, err)
	if result == (ctrl.Result{}) && err == nil {
		// What stalls in one part ends no polling of the others.
		result.RequeueAfter = f.Kind.Next(obj)
	}
	return result, err
}

// finalize deletes the Bundles of an object that was deleted by itself, and
// waits for them. Where its namespace or kind goes, nothing is removed.
func (f *Frame[T]) finalize(ctx context.Context, obj T) error {
	if !fleet.IsHeld(obj) {
		return nil
	}
	deliberate, err := removal.Deliberate(ctx, f.Bundles.Live, obj, f.Resource)
	if err != nil {
		return err
	}
	if deliberate {
		left, err := f.Bundles.But(ctx, f.Owner(obj), nil)
		if err != nil {
			return err
		}
		if len(left) > 0 {
			if err := f.Bundles.Delete(ctx, left); err != nil {
				return err
			}
			return f.waitFor(ctx, obj, len(left))
		}
	}
	fleet.Release(obj)
	return client.IgnoreNotFound(f.Bundles.Client.Update(ctx, obj))
}

// waitFor says on a deleted object that it waits for its Bundles.
func (f *Frame[T]) waitFor(ctx context.Context, obj T, bundles int) error {
	waiting := fmt.Errorf("waiting until %d bundles are removed from their clusters", bundles)
	return f.statuses.Removing(ctx, f.Bundles.Client, obj, f.Clock.Now(), fault.Wait(bundlesGone, reconcile.ReasonRemoving, waiting))
}
