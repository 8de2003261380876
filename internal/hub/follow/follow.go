// Package follow watches single objects by their names, on behalf of those who
// depend on them. It sees metadata alone, and of the objects of a namespace only
// those that somebody asked for.
package follow

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// Object is an object of the core group.
type Object struct{ Resource, Namespace, Name string }

// Follower tells who follows an object that it has changed, came or went.
type Follower struct {
	reads metadata.Interface
	tell  func(who types.NamespacedName)

	mu       sync.Mutex
	ended    bool
	followed map[Object]*following
}

// following is the watch of one object.
type following struct {
	stop chan struct{}
	by   map[types.NamespacedName]bool
}

// Start makes the follower work until ctx ends.
func (f *Follower) Start(ctx context.Context, reads metadata.Interface, tell func(who types.NamespacedName)) {
	f.reads, f.tell, f.followed = reads, tell, map[Object]*following{}
	context.AfterFunc(ctx, f.end)
}

func (f *Follower) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	for _, w := range f.followed {
		close(w.stop)
	}
	f.followed = nil
}

// Follow makes who be told of these objects, and of no others any more. Of one
// that is new to the follower it is told once in any case.
func (f *Follower) Follow(who types.NamespacedName, objects []Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended || f.reads == nil {
		return
	}
	wanted := map[Object]bool{}
	for _, o := range objects {
		wanted[o] = true
		w := f.followed[o]
		if w == nil {
			w = &following{stop: make(chan struct{}), by: map[types.NamespacedName]bool{}}
			f.followed[o] = w
			go f.watch(o, w.stop)
		}
		w.by[who] = true
	}
	for o, w := range f.followed {
		if !wanted[o] && w.by[who] {
			if delete(w.by, who); len(w.by) == 0 {
				close(w.stop)
				delete(f.followed, o)
			}
		}
	}
}

// watch tells of one object until stop is closed.
func (f *Follower) watch(o Object, stop <-chan struct{}) {
	informer := metadatainformer.NewFilteredMetadataInformer(f.reads, schema.GroupVersionResource{Version: "v1", Resource: o.Resource},
		o.Namespace, 0, cache.Indexers{}, func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, o.Name).String()
		}).Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { f.changed(o) },
		UpdateFunc: func(before, after any) {
			if versionOf(before) != versionOf(after) {
				f.changed(o)
			}
		},
		DeleteFunc: func(any) { f.changed(o) },
	})
	if err == nil {
		informer.Run(stop)
	}
}

func versionOf(obj any) string {
	m, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return m.GetResourceVersion()
}

// changed tells all who follow an object.
func (f *Follower) changed(o Object) {
	f.mu.Lock()
	var who []types.NamespacedName
	if w := f.followed[o]; w != nil {
		for one := range w.by {
			who = append(who, one)
		}
	}
	f.mu.Unlock()
	for _, one := range who {
		f.tell(one)
	}
}
