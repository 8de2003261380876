package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/content"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// errMoved says that a parcel that was counted on is not there; what is to be
// stored is decided anew.
var errMoved = errors.New("a parcel that was there is gone")

// placing is how often that is done.
const placing = 3

// putParcels stores a root and those of its chunks that no parcel has.
func (s *Store) putParcels(ctx context.Context, root content.Blob, chunks []content.Blob) error {
	return s.once(ctx, knownKey(root.Ref, ""), func(ctx context.Context) error { return s.placeRoot(ctx, root, chunks) })
}

func (s *Store) placeRoot(ctx context.Context, root content.Blob, chunks []content.Blob) error {
	if err := s.loadPlaces(ctx); err != nil {
		return err
	}
	err := errMoved
	for try := 0; errors.Is(err, errMoved) && try < placing; try++ {
		if s.places.has(root.Name) {
			err = s.adopt(ctx, root)
			continue
		}
		claimed := s.places.claim(root.Name, chunks)
		err = s.place(ctx, root, claimed)
		s.places.settle(claimed, err)
		if apierrors.IsAlreadyExists(err) {
			err = s.adopt(ctx, root)
		}
	}
	if err != nil {
		return s.explain(root.Ref, err)
	}
	return nil
}

// place stores what was claimed: the root last, once all that it counts on is
// there and bears no mark.
func (s *Store) place(ctx context.Context, root content.Blob, c claim) error {
	names := make([]string, 0, len(c.others)+len(c.extra))
	for _, other := range c.others {
		select {
		case <-other.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if other.failed {
			return errMoved
		}
		if err := s.retain(ctx, other.name); err != nil {
			return err
		}
		names = append(names, other.name)
	}
	for _, extra := range c.extra {
		err := s.putBlobWith(ctx, content.Blob{Ref: content.Ref{Name: extra.name}}, extra, nil)
		if apierrors.IsAlreadyExists(err) {
			err = s.retain(ctx, extra.name)
		}
		if err != nil {
			return err
		}
		names = append(names, extra.name)
	}
	if err := s.putBlobWith(ctx, root, c.own, names); err != nil {
		return err
	}
	secrets := content.Listed(objectFor(root, "").GetAnnotations()[ChunksAnnotation])
	s.parts.Store(knownKey(root.Ref, ""), parts{secrets: secrets, parcels: names})
	return nil
}

func (s *Store) putBlobWith(ctx context.Context, b content.Blob, chunks newPlace, others []string) error {
	obj := objectFor(b, "").(*corev1.ConfigMap)
	if obj.Annotations == nil {
		obj.Annotations = map[string]string{}
	}
	if len(others) > 0 {
		obj.Annotations[content.ParcelsAnnotation] = strings.Join(others, ",")
	}
	if b.Data == nil {
		delete(obj.BinaryData, content.DataKey)
	}
	if chunks.place != nil {
		obj.Labels[ManagedLabel] = packed
		obj.Annotations[holdsAnnotation] = strings.Join(chunks.chunks, ",")
		obj.BinaryData[content.PackKey] = content.Pack(chunks.blobs)
	}
	return s.client.Create(ctx, obj)
}

// retain takes the mark off a parcel that is counted on.
func (s *Store) retain(ctx context.Context, name string) error {
	ref := content.Ref{Name: name}
	key := knownKey(ref, "")
	if _, ok := s.known.Load(key); ok {
		return nil
	}
	err := s.unmark(ctx, objectFor(content.Blob{Ref: ref}, ""))
	if apierrors.IsNotFound(err) {
		s.places.lost(name)
		return errMoved
	}
	if err == nil {
		s.known.Store(key, struct{}{})
	}
	return err
}

// adopt uses a root that is stored already, with the parcels that it names.
// One whose parcels are gone is deleted, to be stored anew.
func (s *Store) adopt(ctx context.Context, root content.Blob) error {
	meta, err := s.metadata(ctx, objectFor(root, ""))
	if apierrors.IsNotFound(err) {
		s.places.lost(root.Name)
		return errMoved
	}
	if err != nil {
		return err
	}
	for _, other := range content.Listed(meta.Annotations[content.ParcelsAnnotation]) {
		err := s.retain(ctx, other)
		if errors.Is(err, errMoved) {
			s.places.lost(root.Name)
			gone := s.client.Delete(ctx, meta, client.Preconditions{UID: ptr.To(meta.UID)})
			return errors.Join(errMoved, client.IgnoreNotFound(gone))
		}
		if err != nil {
			return err
		}
	}
	s.parts.Store(knownKey(root.Ref, ""), partsOf(meta))
	if !s.places.has(root.Name) {
		s.places.add(root.Name, content.Listed(meta.Annotations[holdsAnnotation]))
	}
	return s.unmarkIt(ctx, meta)
}

// loadPlaces reads once which parcels are stored.
func (s *Store) loadPlaces(ctx context.Context) error {
	s.loading.Lock()
	defer s.loading.Unlock()
	if s.loaded {
		return nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	err := s.client.List(ctx, list, client.InNamespace(fleet.ContentNamespace), client.MatchingLabels{ManagedLabel: packed})
	if err != nil {
		return fmt.Errorf("look which content is stored: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b metav1.PartialObjectMetadata) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	for i := range list.Items {
		s.places.add(list.Items[i].Name, content.Listed(list.Items[i].Annotations[holdsAnnotation]))
	}
	s.loaded = true
	return nil
}
