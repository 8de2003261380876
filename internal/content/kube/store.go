// Package kube keeps content on the hub's API server: the hub writes it here,
// each payload once, and its agents read it.
package kube

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/content"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// ChunksAnnotation lists on a root the names of its chunks that are stored
	// by themselves, so that a sweep can mark them by metadata alone.
	ChunksAnnotation = "flotilla.sh/chunks"
	// holdsAnnotation lists on a parcel the beginnings of the digests of the
	// chunks that it holds.
	holdsAnnotation = "flotilla.sh/holds"
	// UnusedAnnotation is when a sweep first saw that nothing refers to a
	// payload, in RFC 3339.
	UnusedAnnotation = "flotilla.sh/unused-since"
	// ManagedLabel is on every ConfigMap and Secret that holds a payload, and on
	// what is swept with them.
	ManagedLabel = "flotilla.sh/content"
	// SecretType is the type of those Secrets.
	SecretType = "flotilla.sh/content"
	// packed is the value of ManagedLabel of what holds chunks.
	packed = "chunks"
)

// Store keeps payloads as Kubernetes objects on the hub: immutable ConfigMaps
// in a namespace of their own, and Secrets in another for what is secret.
type Store struct {
	client client.Client
	// known are the objects that this process has put or seen; a put of a
	// known one costs nothing. A sweep forgets what it marks or deletes.
	known sync.Map
	// parts are those of each root that was put or seen.
	parts sync.Map
	// places are the parcels with chunks; they are read when first needed.
	places  places
	loading sync.Mutex
	loaded  bool
	// flights joins the puts of one payload at one time: all clusters of a
	// bundle ask for it at once.
	flights singleflight.Group
}

// New returns a store that reads and writes through c, which must not be
// a cache: payloads are no good guests there.
func New(c client.Client) *Store {
	return &Store{client: c}
}

// Put stores everything of enc that is not there yet, chunks before the root.
// Secret payloads go to namespace.
func (s *Store) Put(ctx context.Context, enc content.Encoded, namespace string) error {
	if err := s.putSecrets(ctx, enc, namespace); err != nil {
		return err
	}
	if open := enc.Open(); len(open) > 0 {
		return s.putParcels(ctx, enc.Root, open)
	}
	return s.putBlob(ctx, enc.Root, namespace)
}

// AwayName names what stands here for a root that is stored in a registry: it
// leads a sweep to the root's secret chunks.
func AwayName(root string) string { return root + "-away" }

// PutSecrets stores only the secret chunks of enc, which are never stored
// anywhere else.
func (s *Store) PutSecrets(ctx context.Context, enc content.Encoded, namespace string) error {
	if err := s.putSecrets(ctx, enc, namespace); err != nil || len(enc.Open()) == len(enc.Chunks) {
		return err
	}
	return s.putBlob(ctx, content.Blob{Ref: content.Ref{Name: AwayName(enc.Root.Name)}, Chunks: enc.Root.Chunks}, namespace)
}

func (s *Store) putSecrets(ctx context.Context, enc content.Encoded, namespace string) error {
	for _, b := range enc.Chunks {
		if !b.Secret {
			continue
		}
		if err := s.putBlob(ctx, b, namespace); err != nil {
			return err
		}
	}
	return nil
}

// putBlob stores a payload, or finds that it is stored.
func (s *Store) putBlob(ctx context.Context, b content.Blob, namespace string) error {
	return s.once(ctx, knownKey(b.Ref, namespace), func(ctx context.Context) error {
		obj := objectFor(b, namespace)
		if err := s.Keep(ctx, obj); err != nil {
			return s.explain(b.Ref, err)
		}
		s.parts.Store(knownKey(b.Ref, namespace), parts{secrets: content.Listed(obj.GetAnnotations()[ChunksAnnotation])})
		return nil
	})
}

// Keep stores an immutable object that bears ManagedLabel and is named by what
// it holds, or finds that it is stored. It is swept like content.
func (s *Store) Keep(ctx context.Context, obj client.Object) error {
	err := s.client.Create(ctx, obj)
	if apierrors.IsAlreadyExists(err) {
		return s.unmark(ctx, obj)
	}
	return err
}

// explain says what could not be stored.
func (s *Store) explain(ref content.Ref, err error) error {
	err = fmt.Errorf("store content %s: %w", ref.ID(), err)
	if apierrors.IsNotFound(err) && !ref.Secret {
		return fmt.Errorf("%w; the chart flotilla makes the namespace %s: install it again", err, fleet.ContentNamespace)
	}
	return err
}

// unmark takes the mark of a sweep off an object that is used again. The write
// moves its resource version, which a sweep's delete is conditional on.
func (s *Store) unmark(ctx context.Context, obj client.Object) error {
	meta, err := s.metadata(ctx, obj)
	if err != nil {
		return err
	}
	return s.unmarkIt(ctx, meta)
}

func (s *Store) metadata(ctx context.Context, obj client.Object) (*metav1.PartialObjectMetadata, error) {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(gvkOf(obj))
	return meta, s.client.Get(ctx, client.ObjectKeyFromObject(obj), meta)
}

func (s *Store) unmarkIt(ctx context.Context, meta *metav1.PartialObjectMetadata) error {
	if meta.Annotations[UnusedAnnotation] == "" {
		return nil
	}
	patch := []byte(`{"metadata":{"annotations":{"` + UnusedAnnotation + `":null}}}`)
	return s.client.Patch(ctx, meta, client.RawPatch("application/merge-patch+json", patch))
}

// ForgetNamespace makes puts of secret payloads look again whether they are in
// a namespace, because it was deleted.
func (s *Store) ForgetNamespace(namespace string) {
	s.known.Range(func(key, _ any) bool {
		if strings.HasPrefix(key.(string), namespace+"/") {
			s.known.Delete(key)
		}
		return true
	})
}

// Forget makes the next put of this payload look again whether it is there.
func (s *Store) Forget(name, namespace string) {
	s.known.Delete(namespace + "/" + name)
	s.parts.Delete(namespace + "/" + name)
}

// Stored takes in everything that there is: what was taken away behind the
// store's back is put anew.
func (s *Store) Stored(objects []metav1.PartialObjectMetadata) {
	there := make(map[string]bool, len(objects))
	for i := range objects {
		there[objects[i].Namespace+"/"+objects[i].Name] = true
	}
	s.known.Range(func(key, _ any) bool {
		if !there[key.(string)] {
			namespace, name, _ := strings.Cut(key.(string), "/")
			s.Deleted(name, namespace)
		}
		return true
	})
}

// Deleted makes puts store what was in this object anew.
func (s *Store) Deleted(name, namespace string) {
	s.Forget(name, namespace)
	if namespace == fleet.ContentNamespace {
		s.places.lost(name)
	}
}

// Get reads what is stored under a name; what is secret from namespace.
func (s *Store) Get(ctx context.Context, ref content.Ref, namespace string) (content.Parcel, error) {
	if !ref.Secret {
		obj := &corev1.ConfigMap{}
		err := s.client.Get(ctx, client.ObjectKey{Namespace: fleet.ContentNamespace, Name: ref.Name}, obj)
		return content.FromConfigMap(obj), err
	}
	obj := &corev1.Secret{}
	err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, obj)
	return content.FromSecret(obj), err
}

// In returns a Getter that reads secret payloads from namespace.
func (s *Store) In(namespace string) content.Getter {
	return getterFunc(func(ctx context.Context, ref content.Ref) (content.Parcel, error) {
		return s.Get(ctx, ref, namespace)
	})
}

type getterFunc func(ctx context.Context, ref content.Ref) (content.Parcel, error)

func (f getterFunc) Get(ctx context.Context, ref content.Ref) (content.Parcel, error) {
	return f(ctx, ref)
}

func knownKey(ref content.Ref, namespace string) string {
	return spaceOf(ref, namespace) + "/" + ref.Name
}

// spaceOf is the namespace of a payload.
func spaceOf(ref content.Ref, namespace string) string {
	if ref.Secret {
		return namespace
	}
	return fleet.ContentNamespace
}

// objectFor returns the Kubernetes object that holds a blob.
func objectFor(b content.Blob, namespace string) client.Object {
	meta := metav1.ObjectMeta{
		Namespace: spaceOf(b.Ref, namespace), Name: b.Name, Labels: map[string]string{ManagedLabel: "true"},
	}
	var names []string
	for _, c := range b.Chunks {
		if c.Name != "" {
			names = append(names, c.Name)
		}
	}
	if len(names) > 0 {
		meta.Annotations = map[string]string{ChunksAnnotation: strings.Join(names, ",")}
	}
	data := map[string][]byte{content.DataKey: b.Data}
	if b.Secret {
		return &corev1.Secret{ObjectMeta: meta, Type: SecretType, Immutable: ptr.To(true), Data: data}
	}
	return &corev1.ConfigMap{ObjectMeta: meta, Immutable: ptr.To(true), BinaryData: data}
}

func gvkOf(obj client.Object) schema.GroupVersionKind {
	if _, ok := obj.(*corev1.Secret); ok {
		return corev1.SchemeGroupVersion.WithKind("Secret")
	}
	return corev1.SchemeGroupVersion.WithKind("ConfigMap")
}
