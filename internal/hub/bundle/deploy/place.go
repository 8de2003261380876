package deploy

import (
	"context"

	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/content/kube"
	"github.com/flotilla-sh/flotilla/internal/content/registry"
	"github.com/flotilla-sh/flotilla/internal/hub/registries"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// place is where the content of a bundle is kept.
type place interface {
	// Name is what deployments call it; the hub's API server has none.
	Name() string
	// Has tells whether content is stored there, with all that the agent of a
	// cluster's namespace needs of it.
	Has(ctx context.Context, namespace string, ref *fleet.ContentRef) (bool, error)
	// Put sees to it that content is stored, which nil is already, and that the
	// agent of a cluster's namespace can read it.
	Put(ctx context.Context, namespace string, enc *content.Encoded) error
}

// placeOf returns the place of a bundle's content.
func (c *Controller) placeOf(ctx context.Context, bundle *fleet.Bundle) (place, error) {
	key := c.Registries.Key(bundle)
	if key.Name == "" {
		return onHub{c.Store}, nil
	}
	at, err := c.Registries.At(ctx, key)
	if err != nil {
		return nil, err
	}
	return inRegistry{at, c.Store}, nil
}

// onHub is the hub's API server, where agents may read what they can name.
type onHub struct{ store *kube.Store }

// Name is empty.
func (onHub) Name() string { return "" }

// Has looks once.
func (h onHub) Has(ctx context.Context, namespace string, ref *fleet.ContentRef) (bool, error) {
	return h.store.Has(ctx, content.Ref{Name: ref.Name}, namespace)
}

// Put stores all of it. What is stored costs nothing; what was lost comes back.
func (h onHub) Put(ctx context.Context, namespace string, enc *content.Encoded) error {
	if enc == nil {
		return nil
	}
	return h.store.Put(ctx, *enc, namespace)
}

// inRegistry is an OCI registry. What is secret is never there but in store.
type inRegistry struct {
	at    *registries.Place
	store *kube.Store
}

// Name is that of the Secret from which agents learn the way.
func (r inRegistry) Name() string { return r.at.Name }

// Has asks. A registry that cannot be asked is taken to have kept what it had:
// what changes nothing goes on without it.
func (r inRegistry) Has(ctx context.Context, namespace string, ref *fleet.ContentRef) (bool, error) {
	stored, err := r.at.Has(ctx, ref.Name)
	if err != nil && ref.Registry == r.at.Name && (registry.Unreachable(err) || registry.Unauthorized(err)) {
		return true, nil
	}
	if err != nil || !stored {
		return stored, err
	}
	return r.store.HasSecrets(ctx, ref.Name, namespace)
}

// Put stores what is secret on the hub and the rest in the registry.
func (r inRegistry) Put(ctx context.Context, namespace string, enc *content.Encoded) error {
	if enc != nil {
		if err := r.store.PutSecrets(ctx, *enc, namespace); err != nil {
			return err
		}
		if err := r.at.Put(ctx, *enc); err != nil {
			return err
		}
	}
	return r.at.Grant(ctx, namespace)
}
