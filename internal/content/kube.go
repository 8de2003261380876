package content

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// ChunksAnnotation lists on a root the names of its chunks, so that a
	// sweep can mark them by metadata alone.
	ChunksAnnotation = "flotilla.sh/chunks"
	// UnusedAnnotation is when a sweep first saw that nothing refers to a
	// payload, in RFC 3339.
	UnusedAnnotation = "flotilla.sh/unused-since"
	// ManagedLabel is on every ConfigMap and Secret that holds a payload.
	ManagedLabel = "flotilla.sh/content"
	// SecretType is the type of those Secrets.
	SecretType = "flotilla.sh/content"
	// DataKey is the key of the payload in them.
	DataKey = "content"
)

// Store keeps payloads as Kubernetes objects on the hub: immutable ConfigMaps
// in a namespace of their own, and Secrets in another for what is secret.
type Store struct {
	client client.Client
	// known are the objects that this process has put or seen; a put of a
	// known one costs nothing. A sweep forgets what it marks or deletes.
	known sync.Map
}

// NewStore returns a store that reads and writes through c, which must not be
// a cache: payloads are no good guests there.
func NewStore(c client.Client) *Store {
	return &Store{client: c}
}

// Put stores everything of enc that is not there yet, chunks before the root.
// Secret payloads go to namespace.
func (s *Store) Put(ctx context.Context, enc Encoded, namespace string) error {
	for _, b := range enc.Chunks {
		if err := s.putBlob(ctx, b, namespace); err != nil {
			return err
		}
	}
	return s.putBlob(ctx, enc.Root, namespace)
}

func (s *Store) putBlob(ctx context.Context, b Blob, namespace string) error {
	key := knownKey(b.Ref, namespace)
	if _, ok := s.known.Load(key); ok {
		return nil
	}
	obj := objectFor(b, namespace)
	err := s.client.Create(ctx, obj)
	if apierrors.IsAlreadyExists(err) {
		err = s.unmark(ctx, obj)
	}
	if apierrors.IsNotFound(err) && !b.Secret {
		return fmt.Errorf("store content %s: %w; the chart flotilla makes this namespace: install it again", b.Name, err)
	}
	if err != nil {
		return fmt.Errorf("store content %s: %w", b.Name, err)
	}
	s.known.Store(key, struct{}{})
	return nil
}

// unmark takes the mark of a sweep off an object that is used again. The write
// moves its resource version, which a sweep's delete is conditional on.
func (s *Store) unmark(ctx context.Context, obj client.Object) error {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(gvkOf(obj))
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(obj), meta); err != nil {
		return err
	}
	if meta.Annotations[UnusedAnnotation] == "" {
		return nil
	}
	patch := []byte(`{"metadata":{"annotations":{"` + UnusedAnnotation + `":null}}}`)
	return s.client.Patch(ctx, meta, client.RawPatch("application/merge-patch+json", patch))
}

// Has tells whether a payload is stored. It looks once per process, unless a
// sweep has marked it.
func (s *Store) Has(ctx context.Context, ref Ref, namespace string) (bool, error) {
	key := knownKey(ref, namespace)
	if _, ok := s.known.Load(key); ok {
		return true, nil
	}
	obj := objectFor(Blob{Ref: ref}, namespace)
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(gvkOf(obj))
	err := s.client.Get(ctx, client.ObjectKeyFromObject(obj), meta)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look whether content %s is stored: %w", ref.Name, err)
	}
	if meta.Annotations[UnusedAnnotation] == "" {
		// A marked one is left for a put to see.
		s.known.Store(key, struct{}{})
	}
	return true, nil
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
}

// Get reads a payload; a secret one from namespace.
func (s *Store) Get(ctx context.Context, ref Ref, namespace string) ([]byte, error) {
	if !ref.Secret {
		obj := &corev1.ConfigMap{}
		err := s.client.Get(ctx, client.ObjectKey{Namespace: fleet.ContentNamespace, Name: ref.Name}, obj)
		return obj.BinaryData[DataKey], err
	}
	obj := &corev1.Secret{}
	err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, obj)
	return obj.Data[DataKey], err
}

// In returns a Getter that reads secret payloads from namespace.
func (s *Store) In(namespace string) Getter {
	return getterFunc(func(ctx context.Context, ref Ref) ([]byte, error) {
		return s.Get(ctx, ref, namespace)
	})
}

type getterFunc func(ctx context.Context, ref Ref) ([]byte, error)

func (f getterFunc) Get(ctx context.Context, ref Ref) ([]byte, error) { return f(ctx, ref) }

func knownKey(ref Ref, namespace string) string {
	return spaceOf(ref, namespace) + "/" + ref.Name
}

// spaceOf is the namespace of a payload.
func spaceOf(ref Ref, namespace string) string {
	if ref.Secret {
		return namespace
	}
	return fleet.ContentNamespace
}

// objectFor returns the Kubernetes object that holds a blob.
func objectFor(b Blob, namespace string) client.Object {
	meta := metav1.ObjectMeta{
		Namespace: spaceOf(b.Ref, namespace), Name: b.Name, Labels: map[string]string{ManagedLabel: "true"},
	}
	if len(b.Chunks) > 0 {
		names := make([]string, 0, len(b.Chunks))
		for _, c := range b.Chunks {
			names = append(names, c.Name)
		}
		meta.Annotations = map[string]string{ChunksAnnotation: strings.Join(names, ",")}
	}
	data := map[string][]byte{DataKey: b.Data}
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
