package registry

import (
	"context"
	"errors"
	"net/http"
	"time"

	"oras.land/oras-go/v2/errdef"
)

// Sweep deletes the roots that nothing has used for the time of grace. Their
// packs go with the registry's own garbage collection, unless another root has
// them. What a sweep saw is not stored: a hub that starts waits anew.
func (r *Registry) Sweep(ctx context.Context, used map[string]bool, now time.Time, grace time.Duration) error {
	tags, err := r.look(ctx, used, now)
	if err != nil {
		return r.explain("look which content is stored", err)
	}
	for _, tag := range tags {
		if used[tag] {
			continue
		}
		if err := r.expire(ctx, tag, now.Add(-grace)); err != nil {
			return r.explain("delete unused content "+tag, err)
		}
	}
	return nil
}

// look returns what is stored, and settles which of it is used.
func (r *Registry) look(ctx context.Context, used map[string]bool, now time.Time) ([]string, error) {
	ctx, leave, err := r.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	tags, err := r.tags(ctx)
	if err == nil {
		r.settle(tags, used, now)
	}
	return tags, err
}

// settle takes in what is stored and what of it is used.
func (r *Registry) settle(tags []string, used map[string]bool, now time.Time) {
	there := make(map[string]bool, len(tags))
	for _, tag := range tags {
		there[tag] = true
		if used[tag] {
			delete(r.unused, tag)
			continue
		}
		// A put that finds it unknown takes the mark off.
		delete(r.known, tag)
		if r.unused[tag].IsZero() {
			r.unused[tag] = now
		}
	}
	for name := range r.known {
		if !there[name] {
			delete(r.known, name) // taken away behind our back
		}
	}
	for name := range r.unused {
		if !there[name] {
			delete(r.unused, name)
		}
	}
}

// expire deletes one root that was marked before a time. A put of it comes
// before or after, never in between.
func (r *Registry) expire(ctx context.Context, name string, before time.Time) error {
	ctx, leave, err := r.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	since, marked := r.unused[name]
	if !marked || since.After(before) {
		return nil
	}
	descriptor, err := r.repo.Resolve(ctx, name)
	if err == nil {
		err = r.repo.Manifests().Delete(ctx, descriptor)
	}
	if isStatus(err, http.StatusMethodNotAllowed) {
		return errors.Join(errors.New("it allows no deletes: allow them in its configuration, or delete what is old there"), err)
	}
	if err != nil && !errors.Is(err, errdef.ErrNotFound) {
		return err
	}
	delete(r.unused, name)
	// Its packs may go with the next garbage collection.
	r.loaded, r.layers = false, nil
	return nil
}
