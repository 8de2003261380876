package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"

	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/digest"
	"slices"
)

const (
	// kindLabel marks the agent's Secrets and says what they hold.
	kindLabel      = "flotilla.sh/agent-state"
	kindDeployment = "deployment"
	kindContent    = "content"
	kindAccess     = "registry"

	// recordKey and rootKey are the keys of a deployment's Secret. The root of
	// the content is most often all of it, and saves a Secret of its own.
	recordKey  = "record"
	rootKey    = "root"
	contentKey = "content"

	// secretType keeps the agent's Secrets apart in lists.
	secretType = "flotilla.sh/agent-state"
	pageSize   = 50
)

// Store keeps records and content in Secrets of one namespace, and the
// compressed content in memory as well.
type Store struct {
	secrets typedcorev1.SecretInterface

	mu sync.Mutex
	// stored are the deployments that have a Secret, with the root in it.
	stored map[string]string
	// digests are of the records as they were stored last.
	digests map[string]string
	// blobs are compressed payloads by ID; saved tells which have a Secret.
	blobs map[string][]byte
	saved map[string]bool
	// used are the payloads that each deployment needs, kept those that were
	// made here for it.
	used, kept map[string][]content.Ref
	// access are the ways to registries by name.
	access map[string]map[string][]byte
}

// NewStore returns a store in the namespace of secrets.
func NewStore(secrets typedcorev1.SecretInterface) *Store {
	return &Store{
		secrets: secrets, stored: map[string]string{}, digests: map[string]string{}, blobs: map[string][]byte{},
		saved: map[string]bool{}, used: map[string][]content.Ref{}, kept: map[string][]content.Ref{},
		access: map[string]map[string][]byte{},
	}
}

// Load reads everything and returns the records. Content that no record needs
// is swept.
func (s *Store) Load(ctx context.Context) ([]*Record, error) {
	var records []*Record
	options := metav1.ListOptions{LabelSelector: kindLabel, Limit: pageSize}
	for {
		page, err := s.secrets.List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("read the agent's state: %w", err)
		}
		for i := range page.Items {
			record, err := s.take(&page.Items[i])
			if err != nil {
				return nil, fmt.Errorf("secret %s/%s: %w; delete it to let the hub send the deployment again",
					page.Items[i].Namespace, page.Items[i].Name, err)
			}
			if record != nil {
				records = append(records, record)
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return records, errors.Join(s.sweep(ctx, s.all()), s.sweepAccess(ctx, records))
		}
	}
}

func (s *Store) take(secret *corev1.Secret) (*Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if secret.Labels[kindLabel] == kindAccess {
		s.access[secret.Name] = secret.Data
		return nil, nil //nolint:nilnil // an access is no record
	}
	if secret.Labels[kindLabel] == kindContent {
		name := secret.Name[len(contentPrefix):]
		s.blobs[name], s.saved[name] = secret.Data[contentKey], true
		return nil, nil //nolint:nilnil // content is no record
	}
	record, err := decodeRecord(secret.Data[recordKey])
	if err != nil {
		return nil, err
	}
	s.digests[record.Name] = digest.OfBytes(secret.Data[recordKey])
	s.used[record.Name], s.stored[record.Name] = record.payloads(), rootOf(record)
	if root := rootOf(record); root != "" {
		s.blobs[root] = secret.Data[rootKey]
	}
	return record, nil
}

const (
	recordPrefix  = "flotilla-deployment-"
	contentPrefix = "flotilla-content-"
)

// SecretName is the name of the Secret that holds the record of a bundle.
func SecretName(owner apply.Owner) string { return recordPrefix + owner.Label }

func recordName(r *Record) string { return SecretName(r.Owner()) }

// Save stores a record, and before it the content that it needs.
func (s *Store) Save(ctx context.Context, r *Record) error {
	if err := s.saveChunks(ctx, r); err != nil {
		return err
	}
	data, err := s.payload(r)
	if err != nil {
		return err
	}
	sum := digest.OfBytes(data[recordKey])
	if s.same(r.Name, sum) {
		return nil
	}
	if err := s.write(ctx, r, data); err != nil {
		return fmt.Errorf("store the state of deployment %s: %w", r.Name, err)
	}
	s.mu.Lock()
	s.digests[r.Name] = sum
	before := s.used[r.Name]
	s.stored[r.Name] = rootOf(r)
	s.used[r.Name] = r.payloads()
	s.mu.Unlock()
	return s.sweep(ctx, before)
}

// same tells whether a record was stored like this before.
func (s *Store) same(name, sum string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.digests[name] == sum
}

// rootOf returns the name of the root of a record's content.
func rootOf(r *Record) string {
	if len(r.Refs) == 0 {
		return ""
	}
	return r.Refs[0].ID()
}

// payload returns what is to be written: the root only where it has changed.
func (s *Store) payload(r *Record) (map[string][]byte, error) {
	record, err := r.encode()
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{recordKey: record}
	s.mu.Lock()
	defer s.mu.Unlock()
	root := rootOf(r)
	if root == "" || s.stored[r.Name] == root {
		return data, nil
	}
	if data[rootKey] = s.blobs[root]; data[rootKey] == nil {
		return nil, sweptError(root)
	}
	return data, nil
}

func (s *Store) write(ctx context.Context, r *Record, data map[string][]byte) error {
	s.mu.Lock()
	_, known := s.stored[r.Name]
	s.mu.Unlock()
	if !known {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: recordName(r), Labels: map[string]string{kindLabel: kindDeployment}},
			Type:       secretType, Data: data,
		}
		_, err := s.secrets.Create(ctx, secret, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return err
	}
	_, err = s.secrets.Patch(ctx, recordName(r), types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

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

// Delete drops a record and the content that only it needs.
func (s *Store) Delete(ctx context.Context, r *Record) error {
	err := s.secrets.Delete(ctx, recordName(r), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the state of deployment %s: %w", r.Name, err)
	}
	s.mu.Lock()
	before := slices.Concat(s.used[r.Name], s.kept[r.Name])
	delete(s.kept, r.Name)
	delete(s.stored, r.Name)
	delete(s.digests, r.Name)
	delete(s.used, r.Name)
	s.mu.Unlock()
	return s.sweep(ctx, before)
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
