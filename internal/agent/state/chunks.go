package state

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/flotilla-sh/flotilla/internal/content"
)

// saveChunks stores the chunks of a record's content that have no Secret yet.
func (s *Store) saveChunks(ctx context.Context, r *Record) error {
	for i, ref := range r.payloads() {
		s.mu.Lock()
		data, saved := s.blobs[ref.ID()], s.saved[ref.ID()]
		s.mu.Unlock()
		if i == 0 || saved {
			continue
		}
		if data == nil {
			return sweptError(ref.ID())
		}
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: contentPrefix + ref.ID(), Labels: map[string]string{kindLabel: kindContent}},
			Type:       secretType, Immutable: ptr.To(true), Data: map[string][]byte{contentKey: data},
		}
		if _, err := s.secrets.Create(ctx, secret, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("store content %s: %w", ref.ID(), err)
		}
		s.mu.Lock()
		s.saved[ref.ID()] = true
		s.mu.Unlock()
	}
	return nil
}

// sweptError says that content went while it was being put to use; the next
// attempt fetches it again.
func sweptError(name string) error {
	return fmt.Errorf("content %s is not there any more; it is fetched again", name)
}

// all returns every payload that the store has.
func (s *Store) all() []content.Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	var refs []content.Ref
	for name := range s.blobs {
		refs = append(refs, content.Ref{Name: name})
	}
	return refs
}

// sweep drops those of the candidates that no record needs.
func (s *Store) sweep(ctx context.Context, candidates []content.Ref) error {
	for _, name := range s.unneeded(candidates) {
		err := s.secrets.Delete(ctx, contentPrefix+name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete content %s: %w", name, err)
		}
	}
	return nil
}

// unneeded forgets candidates that no record needs, and returns the names of
// those that have a Secret.
func (s *Store) unneeded(candidates []content.Ref) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	needed := s.needed()
	var stored []string
	for _, ref := range candidates {
		if needed[ref.ID()] {
			continue
		}
		if s.saved[ref.ID()] {
			stored = append(stored, ref.ID())
		}
		delete(s.blobs, ref.ID())
		delete(s.saved, ref.ID())
	}
	return stored
}

// needed are the names of all payloads that a deployment needs. The caller holds
// the lock.
func (s *Store) needed() map[string]bool {
	needed := map[string]bool{}
	for _, of := range []map[string][]content.Ref{s.used, s.kept} {
		for _, refs := range of {
			for _, ref := range refs {
				needed[ref.ID()] = true
			}
		}
	}
	return needed
}

// Keep takes in content that was made here for a deployment, and returns its
// payloads, the root first. It is kept until the next one is, or the deployment
// goes.
func (s *Store) Keep(name string, enc content.Encoded) []content.Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	refs := []content.Ref{enc.Root.Ref}
	s.blobs[enc.Root.ID()] = enc.Root.Data
	for _, chunk := range enc.Chunks {
		s.blobs[chunk.ID()] = chunk.Data
		refs = append(refs, chunk.Public())
	}
	before := s.kept[name]
	s.kept[name] = refs
	needed := s.needed()
	for _, ref := range before {
		if !needed[ref.ID()] && !s.saved[ref.ID()] {
			delete(s.blobs, ref.ID())
		}
	}
	return refs
}

// Kept returns a payload that the store has, compressed.
func (s *Store) Kept(ref content.Ref) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.blobs[ref.ID()]
	return data, ok
}

// Take takes in a payload. It is kept until the next record is saved, and
// after that if a record needs it.
func (s *Store) Take(ref content.Ref, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobs[ref.ID()] = data
}
