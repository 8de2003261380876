// Package registries knows which OCI registry the content of a bundle goes to,
// and lets the agents of its clusters read there.
package registries

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/content/registry"
	"github.com/flotilla-sh/flotilla/internal/digest"
	"github.com/flotilla-sh/flotilla/internal/fault"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// CopyLabel marks the Secrets from which agents learn how to reach a
	// registry.
	CopyLabel = "flotilla.sh/registry"
	// digestAnnotation tells what such a Secret says.
	digestAnnotation = "flotilla.sh/digest"
)

// Registries are the registries of a hub.
type Registries struct {
	client client.Client
	clock  clock.PassiveClock
	// suffix keeps the content of hubs apart that share a registry.
	suffix string
	// standard is the Secret for bundles that name none; empty for none.
	standard client.ObjectKey

	mu   sync.Mutex
	open map[string]*registry.Registry
	// copies are the Secrets of agents; nil until they are read.
	copies map[client.ObjectKey]accessCopy
}

// accessCopy is a Secret of an agent: what it holds, and when this process
// granted it last.
type accessCopy struct {
	digest  string
	granted time.Time
}

// New returns the registries of a hub, read past all caches. standard is the
// Secret with the registry of bundles that name none.
func New(live client.Client, key content.Key, standard client.ObjectKey, c clock.PassiveClock) *Registries {
	return &Registries{
		client: live, clock: c, standard: standard, suffix: "/" + key.Name("registry")[2:18],
		open: map[string]*registry.Registry{},
	}
}

// Place is where the content of a bundle goes.
type Place struct {
	*registry.Registry
	// Name is that of the Secret in the namespaces of clusters.
	Name  string
	agent registry.Access
	all   *Registries
}

// Key is the Secret with the registry of a bundle; empty for none.
func (r *Registries) Key(bundle *fleet.Bundle) client.ObjectKey {
	if name := bundle.Spec.OCIRegistrySecret; name != "" {
		return client.ObjectKey{Namespace: bundle.Namespace, Name: name}
	}
	return r.standard
}

// At returns the place that a Secret with a registry stands for.
func (r *Registries) At(ctx context.Context, key client.ObjectKey) (*Place, error) {
	secret := &corev1.Secret{}
	err := r.client.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, fault.Stall("RegistrySecretMissing", fmt.Errorf(
			"there is no Secret %s with the registry for content: create it, or take its name out of ociRegistrySecret", key))
	}
	if err != nil {
		return nil, fmt.Errorf("read the Secret %s with the registry for content: %w", key, err)
	}
	if secret.Type != fleet.OCIStorageType {
		return nil, fault.Stall(registry.ReasonInvalidAccess, fmt.Errorf("the Secret %s has the type %q: a registry for content needs %q", key, secret.Type, fleet.OCIStorageType))
	}
	hub, agent, err := registry.Accesses(secret.Data)
	if err != nil {
		return nil, fmt.Errorf("the Secret %s: %w", key, err)
	}
	hub.Reference, agent.Reference = hub.Reference+r.suffix, agent.Reference+r.suffix
	opened, err := r.opened(hub)
	if err != nil {
		return nil, fmt.Errorf("the Secret %s: %w", key, err)
	}
	return &Place{Registry: opened, Name: placeName(key, agent.Reference), agent: agent, all: r}, nil
}

// placeName names the Secret of agents for a place. All of the key and the
// reference counts: who chooses his own must not meet the Secret of others.
func placeName(key client.ObjectKey, reference string) string {
	const digits = 32
	return "flotilla-registry-" + digest.OfBytes([]byte(key.String() + " " + reference))[:digits]
}

func (r *Registries) opened(a registry.Access) (*registry.Registry, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := a.Digest()
	if opened := r.open[id]; opened != nil {
		return opened, nil
	}
	opened, err := registry.Open(a, r.clock)
	if err == nil {
		r.open[id] = opened
	}
	return opened, err
}

// Grant lets the agent of a cluster's namespace read the registry.
func (p *Place) Grant(ctx context.Context, namespace string) error {
	r, key := p.all, client.ObjectKey{Namespace: namespace, Name: p.Name}
	if err := r.load(ctx); err != nil {
		return err
	}
	says := p.agent.Digest()
	r.mu.Lock()
	have, there := r.copies[key]
	if there = there && have.digest == says; there {
		r.copies[key] = accessCopy{says, r.clock.Now()} // no sweep takes it now
	}
	r.mu.Unlock()
	if there {
		return nil
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
			Labels:      map[string]string{CopyLabel: "true"},
			Annotations: map[string]string{digestAnnotation: says},
		},
		Data: p.agent.Data(),
	}
	err := r.client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		err = r.client.Update(ctx, secret)
	}
	if err != nil {
		return fmt.Errorf("give the agent of %s access to the registry: %w", namespace, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.copies[key] = accessCopy{says, r.clock.Now()}
	return nil
}

// load reads once which agents have access to what.
func (r *Registries) load(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.copies != nil {
		return nil
	}
	list, err := r.listCopies(ctx)
	if err != nil {
		return err
	}
	r.copies = map[client.ObjectKey]accessCopy{}
	for i := range list {
		r.copies[client.ObjectKeyFromObject(&list[i])] = accessCopy{digest: list[i].Annotations[digestAnnotation]}
	}
	return nil
}

func (r *Registries) listCopies(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
	list := secrets()
	if err := r.client.List(ctx, list, client.HasLabels{CopyLabel}); err != nil {
		return nil, fmt.Errorf("look which agents have access to a registry: %w", err)
	}
	return list.Items, nil
}

func secrets() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	return list
}
