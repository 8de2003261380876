package hubtest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/content/kube"
	"github.com/flotilla-sh/flotilla/internal/hub/content/gc"
	"github.com/flotilla-sh/flotilla/internal/render"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// key differs between worlds, so that their contents do too.
func (w *world) key() content.Key { return content.Key(w.namespace + w.Name()) }

func object(kind, name, text string) render.Object {
	return render.Object{APIVersion: "v1", Kind: kind, Name: name, JSON: fmt.Appendf(nil, `{"apiVersion":"v1","data":{"t":%q},"kind":%q,"metadata":{"name":%q}}`, text, kind, name)}
}

// large needs chunks, and has a Secret.
func large() []render.Object {
	r := rand.New(rand.NewPCG(1, 2))
	objects := []render.Object{object("Secret", "s", "aGVsbG8=")}
	for i := range 80 {
		text := make([]byte, 1024)
		for j := range text {
			text[j] = byte('a' + r.IntN(26))
		}
		objects = append(objects, object("ConfigMap", fmt.Sprintf("cm-%02d", i), string(text)))
	}
	return objects
}

func (w *world) encode(objects ...render.Object) content.Encoded {
	w.Helper()
	enc, err := content.NewEncoder(w.key()).Objects(objects)
	w.must(err)
	return enc
}

// holders are the objects that hold an encoded manifest.
func (w *world) holders(enc content.Encoded) map[string]client.Object {
	out := map[string]client.Object{}
	for _, b := range append([]content.Blob{enc.Root}, enc.Chunks...) {
		if b.Name == "" {
			continue // with the root
		}
		if b.Secret {
			out[b.Name] = &corev1.Secret{ObjectMeta: w.meta(b.Name)}
		} else {
			out[b.Name] = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.ContentNamespace, Name: b.Name}}
		}
	}
	return out
}

// marked counts the holders that there are and those that bear a mark.
func (w *world) marked(enc content.Encoded) (there, marked int) {
	w.Helper()
	for _, obj := range w.holders(enc) {
		if !w.exists(obj) {
			continue
		}
		there++
		if obj.GetAnnotations()[kube.UnusedAnnotation] != "" {
			marked++
		}
	}
	return there, marked
}

func TestStorePutGet(t *testing.T) {
	for name, objects := range map[string][]render.Object{"small": {object("ConfigMap", "a", "x")}, "chunks and a Secret": large()} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			enc := w.encode(objects...)
			w.must(kube.New(w.client).Put(w.ctx, enc, w.namespace))
			// Another process finds it all there.
			store := kube.New(w.client)
			w.must(store.Put(w.ctx, enc, w.namespace))
			for _, b := range append([]content.Blob{enc.Root}, enc.Chunks...) {
				if b.Name == "" {
					continue
				}
				if got, err := store.Get(w.ctx, b.Ref, w.namespace); err != nil || !bytes.Equal(got.Data, b.Data) {
					t.Errorf("%s: %v, %d bytes, want the %d that were put", b.Name, err, len(got.Data), len(b.Data))
				}
			}
			manifest, _, err := content.FetchObjects(w.ctx, store.In(w.namespace), keeper{}, enc.Root.Ref)
			if err != nil || len(manifest.Objects) != len(objects) {
				t.Errorf("fetched %d objects, %v, want %d", len(manifest.Objects), err, len(objects))
			}
			for _, obj := range w.holders(enc) {
				if secret, ok := obj.(*corev1.Secret); ok && w.exists(secret) && (secret.Immutable == nil || !*secret.Immutable || secret.Labels[kube.ManagedLabel] == "") {
					t.Errorf("Secret %s is to be immutable and labelled", secret.Name)
				}
			}
		})
	}
}

// TestStoreLooksAgain takes away behind a store's back what it has put.
func TestStoreLooksAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		forget func(*kube.Store, content.Blob, string)
		again  bool
	}{
		"knows it":           {func(*kube.Store, content.Blob, string) {}, false},
		"forgot it":          {func(s *kube.Store, b content.Blob, ns string) { s.Forget(b.Name, ns) }, true},
		"forgot the space":   {func(s *kube.Store, _ content.Blob, ns string) { s.ForgetNamespace(ns) }, true},
		"forgot another one": {func(s *kube.Store, _ content.Blob, ns string) { s.ForgetNamespace(ns + "0") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			enc := w.encode(object("Secret", "s", "aGVsbG8="))
			store := kube.New(w.client)
			w.must(store.Put(w.ctx, enc, w.namespace))
			secret := enc.Chunks[0]
			w.must(w.client.Delete(w.ctx, w.holders(enc)[secret.Name]))
			tt.forget(store, secret, w.namespace)
			if got, err := store.Has(w.ctx, secret.Ref, w.namespace); got == tt.again || err != nil {
				t.Errorf("has it: %v, %v", got, err)
			}
			w.must(store.Put(w.ctx, enc, w.namespace))
			if got := w.exists(w.holders(enc)[secret.Name]); got != tt.again {
				t.Errorf("there after a put: %v, want %v", got, tt.again)
			}
		})
	}
}

func (w *world) collector(store *kube.Store) *gc.Collector {
	return &gc.Collector{Client: w.client, Live: w.client, Store: store, Clock: w.clock}
}

// deploy lets a deployment name enc.
func (w *world) deploy(enc content.Encoded) {
	w.Helper()
	w.create(&fleet.BundleDeployment{
		ObjectMeta: w.meta("app"),
		Spec:       fleet.BundleDeploymentSpec{Content: &fleet.ContentRef{Digest: enc.Root.Digest, Name: enc.Root.Name}},
	})
}

func TestSweep(t *testing.T) {
	type scene struct {
		*world
		store *kube.Store
		enc   content.Encoded
	}
	sweep := func(s *scene) { s.must(s.collector(s.store).Sweep(s.ctx)) }
	put := func(s *scene) { s.must(s.store.Put(s.ctx, s.enc, s.namespace)) }
	pass := func(d time.Duration) func(*scene) { return func(s *scene) { s.clock.Step(d) } }
	use := func(s *scene) { s.deploy(s.enc) }
	restart := func(s *scene) { s.store = kube.New(s.client) }
	look := func(s *scene) {
		if ok, err := s.store.Has(s.ctx, s.enc.Root.Ref, s.namespace); !ok || err != nil {
			s.Errorf("has the root: %v, %v", ok, err)
		}
	}
	all := -1
	for name, tt := range map[string]struct {
		steps        []func(*scene)
		there, marks int
	}{
		"unused: marked":                      {[]func(*scene){put, sweep}, all, all},
		"unused: kept through the grace":      {[]func(*scene){put, sweep, pass(gc.Grace - time.Minute), sweep}, all, all},
		"unused: deleted after the grace":     {[]func(*scene){put, sweep, pass(gc.Grace), sweep}, 0, 0},
		"long unused, first sweep only marks": {[]func(*scene){put, pass(100 * gc.Grace), sweep}, all, all},
		"used: root and chunks stay":          {[]func(*scene){put, use, sweep, pass(2 * gc.Grace), sweep}, all, 0},
		"used again: unmarked":                {[]func(*scene){put, sweep, use, sweep}, all, 0},
		"put in between: unmarked":            {[]func(*scene){put, sweep, put}, all, 0},
		"put in between by a new process":     {[]func(*scene){put, sweep, restart, put}, all, 0},
		"put in between, looked at before":    {[]func(*scene){put, sweep, restart, look, put}, all, 0},
		"put in between: saved":               {[]func(*scene){put, sweep, pass(gc.Grace), put, sweep}, all, all},
		"deleted, and put again":              {[]func(*scene){put, sweep, pass(gc.Grace), sweep, put}, all, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := &scene{world: w, store: kube.New(w.client), enc: w.encode(large()...)}
			for _, step := range tt.steps {
				step(s)
			}
			want := func(n int) int {
				if n == all {
					return len(w.holders(s.enc))
				}
				return n
			}
			there, marked := w.marked(s.enc)
			if there != want(tt.there) || marked != want(tt.marks) {
				t.Errorf("%d there and %d marked, want %d and %d", there, marked, want(tt.there), want(tt.marks))
			}
		})
	}
}

// TestSweepCrossesAPut lets a put come between what a sweep has seen and its
// delete.
func TestSweepCrossesAPut(t *testing.T) {
	w := newWorld(t)
	store := kube.New(w.client)
	enc := w.encode(object("ConfigMap", "a", "x"))
	w.must(store.Put(w.ctx, enc, w.namespace))
	w.must(w.collector(store).Sweep(w.ctx))
	w.clock.Step(gc.Grace)
	c := w.collector(store)
	c.Live = &deleter{Client: w.client, name: enc.Root.Name, before: func() { w.must(store.Put(w.ctx, enc, w.namespace)) }}
	w.must(c.Sweep(w.ctx))
	if there, marked := w.marked(enc); there != 1 || marked != 0 {
		t.Errorf("%d there and %d marked, want it saved", there, marked)
	}
}

// TestSweepGoesOn meets an object that an admission policy protects.
func TestSweepGoesOn(t *testing.T) {
	w := newWorld(t)
	store := kube.New(w.client)
	enc := w.encode(object("Secret", "a", "eA=="), object("Secret", "b", "eQ=="))
	w.must(store.Put(w.ctx, enc, w.namespace))
	watching, err := client.NewWithWatch(server.config, client.Options{Scheme: w.client.Scheme()})
	w.must(err)
	c := w.collector(store)
	first := ""
	c.Live = interceptor.NewClient(watching, interceptor.Funcs{
		Patch: func(ctx context.Context, next client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if first == "" && w.holders(enc)[obj.GetName()] != nil {
				first = obj.GetName()
			}
			if obj.GetName() == first {
				return apierrors.NewForbidden(corev1.Resource("secrets"), first, errors.New("a policy says no"))
			}
			return next.Patch(ctx, obj, patch, opts...)
		},
	})
	err = c.Sweep(w.ctx)
	if err == nil || !strings.Contains(err.Error(), first+": ") || !strings.Contains(err.Error(), "a policy says no") {
		t.Errorf("the sweep says %v, want %s", err, first)
	}
	if there, marked := w.marked(enc); there < 2 || marked != there-1 {
		t.Errorf("%d of %d unused objects are marked, want all but one", marked, there)
	}
}

func TestSweepKeepsWhatABundleNames(t *testing.T) {
	w := newWorld(t)
	store := kube.New(w.client)
	enc := w.encode(large()...)
	w.must(store.Put(w.ctx, enc, w.namespace))
	bundle := &fleet.Bundle{ObjectMeta: w.meta("app"), Spec: fleet.BundleSpec{ContentsID: enc.Root.Name}}
	w.create(bundle)
	w.must(w.collector(store).Sweep(w.ctx))
	if _, marked := w.marked(enc); marked != 0 {
		t.Errorf("%d marked, want none: a bundle names it", marked)
	}
	w.must(w.client.Delete(w.ctx, bundle))
	w.must(w.collector(store).Sweep(w.ctx))
	if there, marked := w.marked(enc); marked != there {
		t.Errorf("%d of %d marked, want all: the bundle is gone", marked, there)
	}
}

func TestSweepLeavesOtherSecretsAlone(t *testing.T) {
	w := newWorld(t)
	mine := &corev1.Secret{ObjectMeta: w.meta("mine")}
	w.create(mine)
	w.must(w.collector(kube.New(w.client)).Sweep(w.ctx))
	w.clock.Step(2 * gc.Grace)
	w.must(w.collector(kube.New(w.client)).Sweep(w.ctx))
	before := mine.ResourceVersion
	if !w.exists(mine) || mine.ResourceVersion != before {
		t.Error("a Secret that holds no content was touched")
	}
}
