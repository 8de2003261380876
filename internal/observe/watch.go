package observe

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/flotilla-sh/flotilla/internal/apply"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// resyncEvery is how often kinds that could not be watched are tried again.
const resyncEvery = time.Minute

// Watcher keeps one metadata watch for each kind that deployments have on the
// cluster, and tells a Tracker what it sees. It keeps no objects.
type Watcher struct {
	kinds    *apply.Kinds
	metadata metadata.Interface
	tracker  *Tracker

	mu      sync.Mutex
	running map[apply.Ref]context.CancelFunc
	// dresses ends the watch of all namespaces, which is kept while bundles
	// have set something on theirs: these do not bear the marks of a bundle.
	dresses context.CancelFunc
}

// NewWatcher returns a watcher without watches.
func NewWatcher(c *apply.Client, t *Tracker) *Watcher {
	return &Watcher{kinds: c.Kinds, metadata: c.Metadata, tracker: t, running: map[apply.Ref]context.CancelFunc{}}
}

// Run tries now and then to watch kinds that could not be watched, until ctx
// ends. It costs nothing while all kinds are.
func (w *Watcher) Run(ctx context.Context) {
	wait.JitterUntilWithContext(ctx, w.Sync, resyncEvery, 0.5, true)
}

// Sync starts watches for kinds that are tracked now, and ends those of kinds
// that are tracked no more. Watches end with ctx.
func (w *Watcher) Sync(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.syncDresses(ctx)
	wanted := w.tracker.Kinds()
	for kind, stop := range w.running {
		if !wanted[kind] {
			stop()
			delete(w.running, kind)
		}
	}
	for kind := range wanted {
		if w.running[kind] != nil {
			continue
		}
		served, err := w.kinds.Serving(ctx, kind.GVK())
		if err != nil {
			logr.FromContextOrDiscard(ctx).V(1).Info("a kind is not watched", "kind", kind.Kind, "why", err.Error())
			continue
		}
		watching, stop := context.WithCancel(ctx)
		w.running[kind] = stop
		store := &sink{see: w.tracker.See, gone: w.tracker.gone, kind: kind}
		go run(watching, store, w.metadata.Resource(served.Resource), fleet.DeploymentLabel)
	}
}

// syncDresses starts or ends the watch of all namespaces.
func (w *Watcher) syncDresses(ctx context.Context) {
	switch wanted := w.tracker.Dresses(); {
	case wanted && w.dresses == nil:
		ctx, w.dresses = context.WithCancel(ctx)
		store := &sink{
			see:  func(_ string, ref apply.Ref, _ *metav1.ObjectMeta) { w.tracker.Touch(ref.Name) },
			gone: func(apply.Ref, map[apply.Ref]bool) {},
			kind: apply.Ref{Version: "v1", Kind: "Namespace"},
		}
		go run(ctx, store, w.metadata.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")), "")
	case !wanted && w.dresses != nil:
		w.dresses()
		w.dresses = nil
	}
}

func run(ctx context.Context, store *sink, resource metadata.Getter, selector string) {
	selected := func(o *metav1.ListOptions) { o.LabelSelector = selector }
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			selected(&o)
			return resource.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			selected(&o)
			return resource.Watch(ctx, o)
		},
	}
	reflector := cache.NewReflectorWithOptions(lw, &metav1.PartialObjectMetadata{}, store,
		cache.ReflectorOptions{Name: "objects", TypeDescription: store.kind.Kind, MinWatchTimeout: 5 * time.Minute})
	reflector.RunWithContext(ctx)
}

// sink passes what a reflector sees of a kind on and keeps nothing.
type sink struct {
	kind apply.Ref
	see  func(label string, ref apply.Ref, meta *metav1.ObjectMeta)
	gone func(kind apply.Ref, have map[apply.Ref]bool)
}

func (s *sink) pass(obj any, gone bool) {
	meta, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	seen := &meta.ObjectMeta
	if gone {
		seen = nil
	}
	s.see(meta.Labels[fleet.DeploymentLabel], s.ref(meta), seen)
}

func (s *sink) ref(meta *metav1.PartialObjectMetadata) apply.Ref {
	ref := s.kind
	ref.Namespace, ref.Name = meta.Namespace, meta.Name
	return ref
}

// Add takes in a new object.
func (s *sink) Add(obj any) error {
	s.pass(obj, false)
	return nil
}

// Update takes in a changed object.
func (s *sink) Update(obj any) error {
	s.pass(obj, false)
	return nil
}

// Delete takes in that an object is gone, or has lost its label.
func (s *sink) Delete(obj any) error {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	s.pass(obj, true)
	return nil
}

// Replace takes in a new list; what is not on it is gone.
func (s *sink) Replace(list []any, _ string) error {
	have := make(map[apply.Ref]bool, len(list))
	for _, obj := range list {
		if meta, ok := obj.(*metav1.PartialObjectMetadata); ok {
			have[s.ref(meta).Identity()] = true
			s.pass(obj, false)
		}
	}
	s.gone(s.kind, have)
	return nil
}

// Resync does nothing.
func (s *sink) Resync() error { return nil }
