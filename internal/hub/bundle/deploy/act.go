package deploy

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/deployment"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/reconcile"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// writers bounds the parallel writes of one plan.
const writers = 16

// act carries out a plan. The content that deployments name is stored.
func (c *Controller) act(ctx context.Context, plan deployment.Plan) error {
	writes := reconcile.AtMost(writers)
	for _, d := range plan.Create {
		writes.Do(func() error { return c.create(ctx, d) })
	}
	for _, u := range plan.Update {
		writes.Do(func() error { return c.update(ctx, u) })
	}
	for _, d := range plan.Release {
		writes.Do(func() error { return c.release(ctx, d) })
	}
	return writes.Wait()
}

func (c *Controller) create(ctx context.Context, d *fleet.BundleDeployment) error {
	err := c.Client.Create(ctx, d)
	if apierrors.IsAlreadyExists(err) {
		return fault.Wait(soon, "Behind", fmt.Errorf("the deployment in %s exists already; looking again", d.Namespace))
	}
	if err != nil {
		return fmt.Errorf("create the deployment in %s: %w", d.Namespace, err)
	}
	return nil
}

func (c *Controller) update(ctx context.Context, u deployment.Update) error {
	// Nobody asks who wrote which field of a deployment, and every write pays
	// for the record: the first change of the spec clears it.
	u.New.ManagedFields = []metav1.ManagedFieldsEntry{{}}
	// What the agent says is most of a deployment, and is not compared.
	old := &fleet.BundleDeployment{TypeMeta: u.Old.TypeMeta, ObjectMeta: u.Old.ObjectMeta, Spec: u.Old.Spec}
	patch := client.MergeFrom(old)
	if (u.Old.Spec.Removal == nil) != (u.New.Spec.Removal == nil) {
		// A mark stands for what was seen. Everything else is written by this
		// controller alone, and an agent's report is no reason to do it twice.
		patch = client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{})
	}
	if err := client.IgnoreNotFound(c.Client.Patch(ctx, u.New, patch)); err != nil {
		return fmt.Errorf("update the deployment in %s: %w", u.New.Namespace, err)
	}
	return nil
}

// release deletes a deployment that its agent has removed from the cluster.
func (c *Controller) release(ctx context.Context, d *fleet.BundleDeployment) error {
	base := d.DeepCopy()
	if fleet.Release(d) {
		if err := c.Client.Patch(ctx, d, client.MergeFrom(base)); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return client.IgnoreNotFound(c.Client.Delete(ctx, d))
}
