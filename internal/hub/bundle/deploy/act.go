package deploy

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/deployment"
	"github.com/flotilla-sh/flotilla/internal/pipeline"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// writers bounds the parallel writes of one plan.
const writers = 16

// act carries out a plan: content before the deployments that name it.
func (c *Controller) act(ctx context.Context, plan deployment.Plan, outcomes []pipeline.Outcome) error {
	encoded := make(map[string]*content.Encoded, len(outcomes))
	for _, o := range outcomes {
		if o.Encoded != nil {
			encoded[o.Desired.Namespace] = o.Encoded
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, d := range plan.Create {
		group.Go(func() error { return c.create(ctx, d, encoded[d.Namespace]) })
	}
	for _, u := range plan.Update {
		group.Go(func() error { return c.update(ctx, u, encoded[u.New.Namespace]) })
	}
	for _, d := range plan.Release {
		group.Go(func() error { return c.release(ctx, d) })
	}
	return group.Wait()
}

func (c *Controller) create(ctx context.Context, d *fleet.BundleDeployment, enc *content.Encoded) error {
	if err := c.put(ctx, enc, d.Namespace); err != nil {
		return err
	}
	err := c.Client.Create(ctx, d)
	if apierrors.IsAlreadyExists(err) {
		// The cache is behind; its next event brings us back here.
		return nil
	}
	if err != nil {
		return fmt.Errorf("create the deployment in %s: %w", d.Namespace, err)
	}
	return nil
}

func (c *Controller) update(ctx context.Context, u deployment.Update, enc *content.Encoded) error {
	if err := c.put(ctx, enc, u.New.Namespace); err != nil {
		return err
	}
	patch := client.MergeFromWithOptions(u.Old, client.MergeFromWithOptimisticLock{})
	if err := c.Client.Patch(ctx, u.New, patch); err != nil {
		return fmt.Errorf("update the deployment in %s: %w", u.New.Namespace, client.IgnoreNotFound(err))
	}
	return nil
}

func (c *Controller) put(ctx context.Context, enc *content.Encoded, namespace string) error {
	if enc == nil {
		return nil
	}
	return c.Store.Put(ctx, *enc, namespace)
}

// release deletes a deployment that its agent has removed from the cluster.
func (c *Controller) release(ctx context.Context, d *fleet.BundleDeployment) error {
	base := d.DeepCopy()
	if controllerutil.RemoveFinalizer(d, fleet.Finalizer) {
		if err := c.Client.Patch(ctx, d, client.MergeFrom(base)); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return client.IgnoreNotFound(c.Client.Delete(ctx, d))
}
