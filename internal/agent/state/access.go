package state

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Access returns how the registry of this name is reached, as it was stored
// last.
func (s *Store) Access(name string) (map[string][]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.access[name]
	return data, ok
}

// SaveAccess stores how a registry is reached, for when the hub is away.
func (s *Store) SaveAccess(ctx context.Context, name string, data map[string][]byte) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{kindLabel: kindAccess}},
		Type:       secretType, Data: data,
	}
	_, err := s.secrets.Create(ctx, secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = s.secrets.Update(ctx, secret, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("store how the registry of the content is reached: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.access[name] = data
	return nil
}

// sweepAccess drops the access to registries that no record names.
func (s *Store) sweepAccess(ctx context.Context, records []*Record) error {
	needed := map[string]bool{}
	for _, r := range records {
		needed[r.Registry] = true
	}
	s.mu.Lock()
	var gone []string
	for name := range s.access {
		if !needed[name] {
			gone = append(gone, name)
			delete(s.access, name)
		}
	}
	s.mu.Unlock()
	for _, name := range gone {
		if err := s.secrets.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete the access to registry %s: %w", name, err)
		}
	}
	return nil
}
