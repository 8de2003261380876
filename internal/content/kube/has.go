package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/content"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// parts are the names of what is stored beside a root and belongs to it: secret
// chunks, in the namespace of who reads them, and parcels.
type parts struct{ secrets, parcels []string }

func partsOf(root *metav1.PartialObjectMetadata) parts {
	return parts{secrets: content.Listed(root.Annotations[ChunksAnnotation]), parcels: content.Listed(root.Annotations[content.ParcelsAnnotation])}
}

// Has tells whether a payload is stored with all that belongs to it. It looks
// once per process, unless a sweep has marked it.
func (s *Store) Has(ctx context.Context, ref content.Ref, namespace string) (bool, error) {
	there, of, err := s.root(ctx, ref, namespace)
	if err != nil || !there {
		return false, err
	}
	for _, name := range of.parcels {
		if there, err = s.hasOne(ctx, content.Ref{Name: name}, namespace); err != nil {
			return false, err
		}
		if !there {
			// A put finds out where else its chunks are.
			s.Deleted(name, fleet.ContentNamespace)
			s.Forget(ref.Name, spaceOf(ref, namespace))
			return false, nil
		}
	}
	return s.hasSecrets(ctx, of, namespace)
}

// HasSecrets tells whether the secret chunks of a root are stored that is itself
// in a registry.
func (s *Store) HasSecrets(ctx context.Context, root, namespace string) (bool, error) {
	ref := content.Ref{Name: AwayName(root)}
	key := knownKey(ref, namespace)
	if of, ok := s.parts.Load(key); ok {
		return s.hasSecrets(ctx, of.(parts), namespace)
	}
	there, of, err := s.root(ctx, ref, namespace)
	if err != nil {
		return false, err
	}
	if !there {
		s.parts.Store(key, parts{}) // it has none
	}
	return s.hasSecrets(ctx, of, namespace)
}

func (s *Store) hasSecrets(ctx context.Context, of parts, namespace string) (bool, error) {
	for _, name := range of.secrets {
		if there, err := s.hasOne(ctx, content.Ref{Name: name, Secret: true}, namespace); err != nil || !there {
			return false, err
		}
	}
	return true, nil
}

// root tells whether a root is stored, and what belongs to it.
func (s *Store) root(ctx context.Context, ref content.Ref, namespace string) (bool, parts, error) {
	key := knownKey(ref, namespace)
	if _, known := s.known.Load(key); known {
		if of, ok := s.parts.Load(key); ok {
			return true, of.(parts), nil
		}
	}
	meta, err := s.look(ctx, ref, namespace)
	if meta == nil || err != nil {
		return false, parts{}, err
	}
	of := partsOf(meta)
	s.parts.Store(key, of)
	return true, of, nil
}

// hasOne tells whether one object is stored.
func (s *Store) hasOne(ctx context.Context, ref content.Ref, namespace string) (bool, error) {
	if _, known := s.known.Load(knownKey(ref, namespace)); known {
		return true, nil
	}
	meta, err := s.look(ctx, ref, namespace)
	return meta != nil, err
}

// look reads the metadata of an object; nil where it is not there.
func (s *Store) look(ctx context.Context, ref content.Ref, namespace string) (*metav1.PartialObjectMetadata, error) {
	meta, err := s.metadata(ctx, objectFor(content.Blob{Ref: ref}, namespace))
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // that is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("look whether content %s is stored: %w", ref.Name, err)
	}
	if meta.Annotations[UnusedAnnotation] == "" {
		// A marked one is left for a put to see.
		s.known.Store(knownKey(ref, namespace), struct{}{})
	}
	return meta, nil
}
