package registries

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	errs := make([]error, len(keys)+1)
	errs[len(keys)] = r.revoke(ctx, granted, grace)
	var all sync.WaitGroup
	for i, key := range keys {
		all.Go(func() {
			place, err := r.At(ctx, key)
			if err == nil {
				err = place.Registry.Sweep(ctx, used, r.clock.Now(), grace)
			}
			errs[i] = err
		})
	}
	all.Wait()
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
	r.settle(list)
	for i := range list {
		meta := &list[i]
		key := client.ObjectKeyFromObject(meta)
		if granted[key] || r.clock.Since(meta.CreationTimestamp.Time) < grace || !r.forget(key, grace) {
			continue
		}
		secret := &corev1.Secret{}
		secret.Namespace, secret.Name = key.Namespace, key.Name
		err := r.client.Delete(ctx, secret, client.Preconditions{UID: ptr.To(meta.UID), ResourceVersion: ptr.To(meta.ResourceVersion)})
		if err := client.IgnoreNotFound(err); err != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("take the access to a registry from %s: %w", key.Namespace, err)
		}
	}
	return nil
}

// settle forgets what is no longer there: it went with a namespace, or somebody
// deleted it.
func (r *Registries) settle(list []metav1.PartialObjectMetadata) {
	there := make(map[client.ObjectKey]bool, len(list))
	for i := range list {
		there[client.ObjectKeyFromObject(&list[i])] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.copies {
		if !there[key] {
			delete(r.copies, key)
		}
	}
}

// forget makes the next grant write anew, unless there was one within the grace.
func (r *Registries) forget(key client.ObjectKey, grace time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if have, there := r.copies[key]; there && r.clock.Since(have.granted) < grace {
		return false
	}
	delete(r.copies, key)
	return true
}

// ForgetNamespace makes grants for the agent of a namespace write anew: the
// namespace goes away, or was made again.
func (r *Registries) ForgetNamespace(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.copies {
		if key.Namespace == namespace {
			delete(r.copies, key)
		}
	}
}
