package register

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// namespaceSoon is how often a namespace that is being deleted is looked at.
const namespaceSoon = 2 * time.Second

// releaseAll drops the finalizers of all deployments of a namespace.
func (c *Controller) releaseAll(ctx context.Context, namespace string) error {
	list := &fleet.BundleDeploymentList{}
	if err := c.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list the deployments in %s: %w", namespace, err)
	}
	for i := range list.Items {
		d := &list.Items[i]
		base := d.DeepCopy()
		if !fleet.Release(d) {
			continue
		}
		if err := c.Client.Patch(ctx, d, client.MergeFrom(base)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("release deployment %s/%s: %w", d.Namespace, d.Name, err)
		}
	}
	return nil
}
