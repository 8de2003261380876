// Package noeffect is the controller that says, on each object of a kind that
// is accepted but does nothing yet, that it does nothing yet.
package noeffect

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-sh/flotilla/internal/reconcile"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// kind is a kind without effect.
type kind struct {
	name    string
	message string
	object  func() reconcile.Conditioned
}

// kinds are all kinds without effect.
func kinds() []kind {
	return []kind{
		{"schedule", "Schedules do not open or close windows yet; deployments are made at any time",
			func() reconcile.Conditioned { return &fleet.Schedule{} }},
		{"imagescan", "images are not scanned yet",
			func() reconcile.Conditioned { return &fleet.ImageScan{} }},
		{"clusterregistration", "agents cannot register themselves yet: create a Cluster",
			func() reconcile.Conditioned { return &fleet.ClusterRegistration{} }},
		{"clusterregistrationtoken", "agents cannot register themselves yet: create a Cluster",
			func() reconcile.Conditioned { return &fleet.ClusterRegistrationToken{} }},
	}
}

// Setup adds a controller for each kind to a manager.
func Setup(mgr ctrl.Manager, clock clock.PassiveClock) error {
	for _, k := range kinds() {
		err := ctrl.NewControllerManagedBy(mgr).
			Named("noeffect-"+k.name).
			For(k.object(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
			Complete(&controller{kind: k, client: mgr.GetClient(), clock: clock})
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
	}
	return nil
}

type controller struct {
	kind
	client   client.Client
	clock    clock.PassiveClock
	statuses reconcile.Written
}

// Reconcile sets the Effective condition of one object.
func (c *controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := c.object()
	if err := c.client.Get(ctx, req.NamespacedName, obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !obj.GetDeletionTimestamp().IsZero() {
		// Rancher Fleet may have left a finalizer on it.
		if !fleet.Release(obj) {
			return ctrl.Result{}, nil
		}
		return reconcile.Result(ctx, client.IgnoreNotFound(c.client.Update(ctx, obj)))
	}
	patcher := c.statuses.Patcher(c.client, obj)
	fleet.SetCondition(obj.StatusConditions(), fleet.Condition{
		Type: fleet.ConditionEffective, Status: metav1.ConditionFalse,
		Reason: fleet.ReasonNotYetEffective, Message: c.message,
	}, c.clock.Now())
	return reconcile.Result(ctx, patcher.Status(ctx, obj))
}
