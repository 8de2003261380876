package write

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-sh/flotilla/internal/digest"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// wanted remembers how each Bundle was to be when it was last looked at. That is
// noted before a write, as its event may come before its answer, and where
// nothing is written, as the cache may be behind the last write.
type wanted struct {
	mu      sync.Mutex
	digests map[types.NamespacedName]string
}

func (w *wanted) note(b *fleet.Bundle) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.digests == nil {
		w.digests = map[types.NamespacedName]string{}
	}
	w.digests[client.ObjectKeyFromObject(b)] = digestOf(b)
}

func (w *wanted) forget(bundle types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.digests, bundle)
}

// is tells whether a Bundle is as it was to be.
func (w *wanted) is(b *fleet.Bundle) bool {
	w.mu.Lock()
	last := w.digests[client.ObjectKeyFromObject(b)]
	w.mu.Unlock()
	return last != "" && last == digestOf(b)
}

// digestOf is that of what upToDate compares; empty where there is none.
func digestOf(b *fleet.Bundle) string {
	labels := maps.Clone(b.Labels)
	delete(labels, fleet.CommitLabel)
	sum, _ := digest.OfJSON([]any{labels, b.Spec})
	return sum
}

// Changes passes the events of Bundles that ask for a look at their owner. A
// Bundle that is as this writer last wanted it does not; nor one that is going,
// before it is gone.
func (w *Writer) Changes() predicate.Predicate {
	asks := func(obj client.Object) bool {
		return obj.GetDeletionTimestamp().IsZero() && !w.wanted.is(obj.(*fleet.Bundle))
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return asks(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() && asks(e.ObjectNew)
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			w.wanted.forget(client.ObjectKeyFromObject(e.Object))
			return true
		},
	}
}
