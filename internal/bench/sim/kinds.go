package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"

	"github.com/flotilla-sh/flotilla/internal/apply"
)

// Kinds are what every cluster of a fleet serves: what a real API server does,
// and what any of their bundles has defined since.
type Kinds struct {
	discovery.DiscoveryInterface
	// Lookup finds kinds.
	Lookup *apply.Kinds

	groups []*metav1.APIGroup
	start  apply.Listing

	mu    sync.Mutex
	lists []*metav1.APIResourceList
}

// NewKinds reads once what an API server serves.
func NewKinds(ctx context.Context, from discovery.DiscoveryInterface) (*Kinds, error) {
	groups, lists, err := from.ServerGroupsAndResources()
	if err != nil {
		return nil, fmt.Errorf("read the kinds of the API server: %w", err)
	}
	k := &Kinds{DiscoveryInterface: from, groups: groups, lists: lists}
	k.Lookup = apply.NewKinds(k, clock.RealClock{})
	k.start, err = k.Lookup.List(ctx)
	return k, err
}

// ServerGroupsAndResources answers from memory.
func (k *Kinds) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.groups, append([]*metav1.APIResourceList(nil), k.lists...), nil
}

// List is what agents report: what was there at first.
func (k *Kinds) List(context.Context) (apply.Listing, error) { return k.start, nil }

// define takes in a custom resource definition.
func (k *Kinds) define(raw []byte) error {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(raw, &crd); err != nil {
		return fmt.Errorf("a definition that no API server would take: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, v := range crd.Spec.Versions {
		k.lists = append(k.lists, &metav1.APIResourceList{
			GroupVersion: crd.Spec.Group + "/" + v.Name,
			APIResources: []metav1.APIResource{{
				Name: crd.Spec.Names.Plural, Kind: crd.Spec.Names.Kind, Verbs: metav1.Verbs{"create", "patch"},
				Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
			}},
		})
	}
	return nil
}
