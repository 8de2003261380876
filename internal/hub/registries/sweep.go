package registries

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Sweep deletes from all registries whose Secrets there are what nothing has
// used for the time of grace, and the access of agents that need none any more.
func (r *Registries) Sweep(ctx context.Context, deployments []fleet.BundleDeployment, grace time.Duration) error {
	used, granted := map[string]bool{}, map[client.ObjectKey]bool{}
	for i := range deployments {
		if ref := deployments[i].Spec.Content; ref != nil && ref.Registry != "" {
			used[ref.Name] = true
			granted[client.ObjectKey{Namespace: deployments[i].Namespace, Name: ref.Registry}] = true
		}
	}
	keys, err := r.keys(ctx)
	if err != nil {
		return err
	}
	errs := []error{r.revoke(ctx, granted, grace)}
	for _, key := range keys {
		place, err := r.at(ctx, key)
		if err == nil {
			err = place.Registry.Sweep(ctx, used, r.clock.Now(), grace)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// keys are the Secrets with registries.
func (r *Registries) keys(ctx context.Context) ([]client.ObjectKey, error) {
	list := secrets()
	if err := r.client.List(ctx, list, client.MatchingFields{"type": fleet.OCIStorageType}); err != nil {
		return nil, fmt.Errorf("look which registries there are: %w", err)
	}
	keys := make([]client.ObjectKey, 0, len(list.Items))
	for i := range list.Items {
		keys = append(keys, client.ObjectKeyFromObject(&list.Items[i]))
	}
	return keys, nil
}

// revoke deletes the access of agents that no deployment needs. A young one may
// be for a deployment that is about to be written.
func (r *Registries) revoke(ctx context.Context, granted map[client.ObjectKey]bool, grace time.Duration) error {
	list, err := r.listCopies(ctx)
	if err != nil {
		return err
	}
	for i := range list {
		meta := &list[i]
		key := client.ObjectKeyFromObject(meta)
		if granted[key] || r.clock.Since(meta.CreationTimestamp.Time) < grace {
			continue
		}
		r.mu.Lock()
		delete(r.copies, key)
		r.mu.Unlock()
		secret := &corev1.Secret{}
		secret.Namespace, secret.Name = key.Namespace, key.Name
		err := r.client.Delete(ctx, secret, client.Preconditions{UID: ptr.To(meta.UID)})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("take the access to a registry from %s: %w", key.Namespace, err)
		}
	}
	return nil
}
