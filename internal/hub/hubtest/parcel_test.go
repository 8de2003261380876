package hubtest_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/content/kube"
	"github.com/flotilla-sh/flotilla/internal/hub/content/gc"
	"github.com/flotilla-sh/flotilla/internal/render"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// keeper is what an agent has.
type keeper map[string][]byte

func (k keeper) Kept(ref content.Ref) ([]byte, bool) { data, ok := k[ref.ID()]; return data, ok }
func (k keeper) Take(ref content.Ref, data []byte)   { k[ref.ID()] = data }

// manifests are about five megabytes of what people deploy; change is a line
// in one of them.
func manifests(change string) []render.Object {
	const line = `{"name":"LISTEN_ADDRESS_%04d","value":"service-%d.shop.svc.cluster.local:%d"},`
	objects := make([]render.Object, 1600)
	for i := range objects {
		name := fmt.Sprintf("service-%04d", i)
		var env strings.Builder
		for n := range 40 {
			fmt.Fprintf(&env, line, n, i*7919%1000, i*n%60000)
		}
		note := ""
		if i == 777 {
			note = change
		}
		objects[i] = render.Object{Kind: "Deployment", Name: name, JSON: fmt.Appendf(nil,
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{"note":%q},"name":%q},"spec":{"template":{"spec":{"containers":[{"env":[%s],"image":"example.org/%s:v1.%d"}]}}}}`,
			note, name, strings.TrimSuffix(env.String(), ","), name, i)}
	}
	return objects
}

// TestOneLineOfALargeBundle is the promise of what a change of one line in a
// bundle of five megabytes stores and sends.
func TestOneLineOfALargeBundle(t *testing.T) {
	w := newWorld(t)
	store, agent, size := kube.New(w.client), keeper{}, 0
	for _, o := range manifests("") {
		size += len(o.JSON)
	}
	fetch := func(agent keeper, enc content.Encoded) content.Fetched {
		t.Helper()
		m, took, err := content.FetchObjects(w.ctx, store.In(w.namespace), agent, enc.Root.Ref)
		if err != nil || len(m.Objects) != 1600 {
			t.Fatalf("%d objects, %v", len(m.Objects), err)
		}
		return took
	}
	first := w.encode(manifests("")...)
	w.must(store.Put(w.ctx, first, w.namespace))
	whole := fetch(agent, first)
	var last content.Encoded
	for n := range 3 {
		last = w.encode(manifests(fmt.Sprintf("change %d", n))...)
		if n == 2 {
			store = kube.New(w.client) // a hub that was restarted
		}
		w.must(store.Put(w.ctx, last, w.namespace))
		took := fetch(agent, last)
		t.Logf("of %d bytes the first fetch took %+v, change %d %+v", size, whole, n, took)
		if size < 5_000_000 || took.Bytes > 16_000 || took.Bytes == 0 {
			t.Errorf("a change of one line sends %d bytes", took.Bytes)
		}
	}
	if late := fetch(keeper{}, last); late.Bytes > whole.Bytes*5/4 {
		t.Errorf("a new agent reads %d bytes for the last version, one read %d for the first", late.Bytes, whole.Bytes)
	}
	// Only the last is used: the first is kept as long as chunks are in it.
	w.deploy(last)
	for range 2 {
		w.must(w.collector(store).Sweep(w.ctx))
		w.clock.Step(gc.Grace)
	}
	fetch(keeper{}, last)
	if !w.exists(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.ContentNamespace, Name: first.Root.Name}}) {
		t.Error("the parcel with most of the chunks was swept")
	}
}

// TestParcelsSideBySide stores many versions at once that share most chunks.
func TestParcelsSideBySide(t *testing.T) {
	w := newWorld(t)
	store := kube.New(w.client)
	var group sync.WaitGroup
	versions := make([]content.Encoded, 8)
	for i := range versions {
		versions[i] = w.encode(append(large(), object("ConfigMap", "own", fmt.Sprint(i)))...)
		for range 2 {
			group.Go(func() {
				if err := store.Put(w.ctx, versions[i], w.namespace); err != nil {
					t.Error(err)
				}
			})
		}
	}
	group.Wait()
	for _, enc := range versions {
		if m, _, err := content.FetchObjects(w.ctx, store.In(w.namespace), keeper{}, enc.Root.Ref); err != nil || len(m.Objects) != len(large())+1 {
			t.Errorf("%d objects, %v", len(m.Objects), err)
		}
	}
}

// TestParcelTakenAwayIsStoredAnew deletes a parcel that others count on.
func TestParcelTakenAwayIsStoredAnew(t *testing.T) {
	for name, notice := range map[string]func(*world, **kube.Store){
		"the hub restarts": func(w *world, s **kube.Store) { *s = kube.New(w.client) },
		"a sweep sees it":  func(w *world, s **kube.Store) { w.must(w.collector(*s).Sweep(w.ctx)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			store := kube.New(w.client)
			first, second := w.encode(large()...), w.encode(append(large(), object("ConfigMap", "new", "x"))...)
			w.must(store.Put(w.ctx, first, w.namespace))
			w.must(store.Put(w.ctx, second, w.namespace))
			w.must(w.client.Delete(w.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.ContentNamespace, Name: first.Root.Name}}))
			notice(w, &store)
			third := w.encode(append(large(), object("ConfigMap", "new", "y"))...)
			for _, enc := range []content.Encoded{third, second} {
				if err := store.Put(w.ctx, enc, w.namespace); err != nil {
					t.Fatal(err)
				}
				if m, _, err := content.FetchObjects(w.ctx, store.In(w.namespace), keeper{}, enc.Root.Ref); enc.Root.Name == third.Root.Name && (err != nil || len(m.Objects) != len(large())+1) {
					t.Errorf("%d objects, %v", len(m.Objects), err)
				}
			}
			w.clock.Step(time.Minute)
		})
	}
}
