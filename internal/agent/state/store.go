package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/digest"
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
// is swept. A record that cannot be read is left out, so that the others are
// served; the hub sends its deployment again.
func (s *Store) Load(ctx context.Context) ([]*Record, error) {
	log := logr.FromContextOrDiscard(ctx)
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
				log.Error(err, "the state of a deployment cannot be read; it is written again once the hub sends the deployment, "+
					"and objects that have left it meanwhile stay on the cluster", "secret", page.Items[i].Namespace+"/"+page.Items[i].Name)
				continue
			}
			if record != nil {
				records = append(records, record)
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			if err := errors.Join(s.sweep(ctx, s.all()), s.sweepAccess(ctx, records)); err != nil {
				log.Info("could not delete content that nobody needs; it stays until the next start", "error", err.Error())
			}
			return records, nil
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

// Save stores a record, and before it the content that it needs. Where its Secret
// was deleted behind the agent's back, all of it is stored anew.
func (s *Store) Save(ctx context.Context, r *Record) error {
	err := s.save(ctx, r)
	if apierrors.IsNotFound(err) {
		s.unsave(r)
		err = s.save(ctx, r)
	}
	return err
}

// unsave forgets that anything is stored of a record.
func (s *Store) unsave(r *Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.stored, r.Name)
	delete(s.digests, r.Name)
	for _, ref := range r.payloads() {
		delete(s.saved, ref.ID())
	}
}

func (s *Store) save(ctx context.Context, r *Record) error {
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
