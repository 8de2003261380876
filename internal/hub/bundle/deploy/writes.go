package deploy

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/deployment"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// cacheLook is how often it is looked whether the cache has a write.
	cacheLook = 10 * time.Millisecond
	// cacheSoon is when to look again whether the cache has caught up.
	cacheSoon = 50 * time.Millisecond
	// cachePatience is how long it is waited for: what was written last may be
	// gone again.
	cachePatience = 5 * time.Second
)

// writes knows the last deployment that was written for each bundle. A decision
// on a cache that does not have it yet would write the same again. Events of
// one kind come in the order of the writes, so one object stands for all.
type writes struct {
	mu   sync.Mutex
	last map[types.NamespacedName]write
}

type write struct {
	key     client.ObjectKey
	version string
	at      time.Time
}

// note takes in what a plan has written: objects that were not written still
// have the version that the cache gave them.
func (w *writes) note(bundle types.NamespacedName, plan *deployment.Plan, now time.Time) {
	var last write
	see := func(d *fleet.BundleDeployment) {
		newer, err := resourceversion.CompareResourceVersion(d.ResourceVersion, last.version)
		if last.version == "" || err == nil && newer > 0 {
			last = write{key: client.ObjectKeyFromObject(d), version: d.ResourceVersion, at: now}
		}
	}
	for _, d := range plan.Create {
		if d.ResourceVersion != "" {
			see(d)
		}
	}
	for _, u := range plan.Update {
		if u.New.ResourceVersion != u.Old.ResourceVersion {
			see(u.New)
		}
	}
	if last.version == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = map[types.NamespacedName]write{}
	}
	w.last[bundle] = last
}

// ahead tells whether the cache does not yet have what was written last for a
// bundle.
func (w *writes) ahead(ctx context.Context, cache client.Reader, bundle types.NamespacedName, now time.Time) bool {
	w.mu.Lock()
	last, ok := w.last[bundle]
	w.mu.Unlock()
	if !ok {
		return false
	}
	if now.Sub(last.at) < cachePatience && !has(ctx, cache, last) {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last[bundle] == last {
		delete(w.last, bundle)
	}
	return false
}

// settle waits until the cache has what was written last for a bundle, or that
// is gone again.
func (w *writes) settle(ctx context.Context, cache client.Reader, bundle types.NamespacedName) error {
	err := wait.PollUntilContextTimeout(ctx, cacheLook, cachePatience, true, func(ctx context.Context) (bool, error) {
		w.mu.Lock()
		last, ok := w.last[bundle]
		w.mu.Unlock()
		return !ok || has(ctx, cache, last), nil
	})
	if ctx.Err() == nil && wait.Interrupted(err) {
		return nil
	}
	return err
}

func has(ctx context.Context, cache client.Reader, last write) bool {
	d := &fleet.BundleDeployment{}
	if err := cache.Get(ctx, last.key, d, client.UnsafeDisableDeepCopy); err != nil {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(d.ResourceVersion, last.version)
	return err != nil || order >= 0
}
