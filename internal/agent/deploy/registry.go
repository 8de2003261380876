package deploy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/content/registry"
)

// registries are the registries that were opened, by the name of the Secret
// that tells how.
type registries struct {
	mu   sync.Mutex
	open map[string]opened
}

type opened struct {
	data map[string][]byte
	*registry.Registry
}

// origin is where content is fetched from: the hub, or the registry of this
// name. What is secret is always on the hub.
func (c *Controller) origin(name string) content.Getter {
	if name == "" {
		return c.hub.Content()
	}
	return origin{c, name}
}

type origin struct {
	*Controller
	name string
}

// Get reads what is stored under a name. Where the registry refuses the
// credentials, the hub is asked whether there are others.
func (o origin) Get(ctx context.Context, ref content.Ref) (content.Parcel, error) {
	if ref.Secret {
		return o.hub.Content().Get(ctx, ref)
	}
	r, err := o.registry(ctx, false)
	if err != nil {
		return content.Parcel{}, err
	}
	parcel, err := r.Get(ctx, ref)
	if !registry.Unauthorized(err) {
		return parcel, err
	}
	other, failed := o.registry(ctx, true)
	if failed != nil || other == r {
		return parcel, err
	}
	return other.Get(ctx, ref)
}

// registry opens the registry: with what is known of it, or anew with what the
// hub says.
func (o origin) registry(ctx context.Context, anew bool) (*registry.Registry, error) {
	o.registries.mu.Lock()
	defer o.registries.mu.Unlock()
	known, ok := o.registries.open[o.name]
	if ok && !anew {
		return known.Registry, nil
	}
	data, kept := o.store.Access(o.name)
	if !kept || anew {
		var err error
		if data, err = o.hub.Registry(ctx, o.name); err != nil {
			return nil, fmt.Errorf("ask the hub for the registry of the content, the Secret %s: %w", o.name, err)
		}
		if err := o.store.SaveAccess(ctx, o.name, data); err != nil {
			return nil, err
		}
	}
	if ok && maps.EqualFunc(data, known.data, slices.Equal[[]byte]) {
		return known.Registry, nil
	}
	_, access, err := registry.Accesses(data)
	if err != nil {
		return nil, fmt.Errorf("the Secret %s: %w", o.name, err)
	}
	r, err := registry.Open(access, o.clock)
	if err != nil {
		return nil, fmt.Errorf("the Secret %s: %w", o.name, err)
	}
	if o.registries.open == nil {
		o.registries.open = map[string]opened{}
	}
	o.registries.open[o.name] = opened{data, r}
	return r, nil
}
