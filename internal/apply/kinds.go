package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
)

// refreshAfter is how old the list of kinds must be before a kind that is not
// on it makes it be read again.
const refreshAfter = 3 * time.Second

// Kind is how a cluster serves a kind.
type Kind struct {
	// Resource is the plural name in paths.
	Resource schema.GroupVersionResource
	// Namespaced tells whether its objects live in a namespace.
	Namespaced bool
	// Status tells whether its status is written apart from the rest.
	Status bool
}

// NoKindError says that the cluster does not serve a kind.
type NoKindError struct{ Kind schema.GroupVersionKind }

// Error says what is missing and what to do.
func (e *NoKindError) Error() string {
	return fmt.Sprintf("this cluster has no kind %s in %s: install what provides it (a CustomResourceDefinition or an API server), or leave the object out for this cluster",
		e.Kind.Kind, e.Kind.GroupVersion())
}

// Kinds knows the kinds that a cluster serves.
type Kinds struct {
	discovery discovery.DiscoveryInterface
	clock     clock.PassiveClock

	mu     sync.Mutex
	read   time.Time
	known  map[schema.GroupVersionKind]Kind
	failed map[schema.GroupVersion]error
}

// NewKinds returns the kinds that d finds. They are read when first asked for.
func NewKinds(d discovery.DiscoveryInterface, c clock.PassiveClock) *Kinds {
	return &Kinds{discovery: d, clock: c}
}

// Lookup returns how the cluster serves gvk, or a NoKindError.
func (k *Kinds) Lookup(ctx context.Context, gvk schema.GroupVersionKind) (Kind, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if kind, ok := k.known[gvk]; ok {
		return kind, nil
	}
	if k.clock.Since(k.read) > refreshAfter {
		if err := k.refresh(ctx); err != nil {
			return Kind{}, err
		}
	}
	if kind, ok := k.known[gvk]; ok {
		return kind, nil
	}
	if err := k.failed[gvk.GroupVersion()]; err != nil {
		return Kind{}, unread(gvk.GroupVersion(), err)
	}
	return Kind{}, &NoKindError{Kind: gvk}
}

// Serving returns how the cluster serves an object of gvk: in another version
// where that one is not served any more, for the object is the same one. It is a
// NoKindError only where no version is.
func (k *Kinds) Serving(ctx context.Context, gvk schema.GroupVersionKind) (Kind, error) {
	kind, err := k.Lookup(ctx, gvk)
	if !IsNoKind(err) {
		return kind, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	best := ""
	for other := range k.known {
		if other.GroupKind() == gvk.GroupKind() && (best == "" || version.CompareKubeAwareVersionStrings(other.Version, best) > 0) {
			best = other.Version
		}
	}
	if best != "" {
		return k.known[gvk.GroupKind().WithVersion(best)], nil
	}
	for gv, failed := range k.failed {
		if gv.Group == gvk.Group {
			return Kind{}, unread(gv, failed)
		}
	}
	return Kind{}, err
}

func unread(gv schema.GroupVersion, err error) error {
	return fmt.Errorf("kinds of %s cannot be read at the moment: %w", gv, err)
}

// Forget makes the next unknown kind be looked for at once: a
// CustomResourceDefinition was applied, or a known kind has gone.
func (k *Kinds) Forget(gvk ...schema.GroupVersionKind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.read = time.Time{}
	for _, g := range gvk {
		delete(k.known, g)
	}
}

// Listing is what a cluster serves.
type Listing struct {
	// Kinds are sorted lines "group/version/Kind N", or "... C" for kinds of
	// cluster scope.
	Kinds []string
	// Unread are the groups and versions that the cluster has, but whose API
	// server does not answer, sorted. Of their kinds those are listed that were
	// known before.
	Unread []string
}

// List reads the kinds anew.
func (k *Kinds) List(ctx context.Context) (Listing, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.refresh(ctx); err != nil {
		return Listing{}, err
	}
	lines := make([]string, 0, len(k.known))
	for gvk, kind := range k.known {
		scope := " C"
		if kind.Namespaced {
			scope = " N"
		}
		lines = append(lines, gvk.GroupVersion().String()+"/"+gvk.Kind+scope)
	}
	slices.Sort(lines)
	unread := make([]string, 0, len(k.failed))
	for gv := range k.failed {
		unread = append(unread, gv.String())
	}
	slices.Sort(unread)
	return Listing{Kinds: lines, Unread: unread}, nil
}

// Namespaced returns the kinds whose objects live in namespaces, read anew.
func (k *Kinds) Namespaced(ctx context.Context) ([]Kind, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.refresh(ctx); err != nil {
		return nil, err
	}
	var kinds []Kind
	for _, kind := range k.known {
		if kind.Namespaced {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// refresh reads all kinds. A group whose own API server is away keeps its last
// known kinds, and does not hide the others.
func (k *Kinds) refresh(ctx context.Context) error {
	_, lists, err := k.discovery.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return fmt.Errorf("read the kinds of this cluster: %w", err)
	}
	known := make(map[schema.GroupVersionKind]Kind, 128)
	for _, list := range lists {
		addKinds(known, list)
	}
	k.failed, _ = discovery.GroupDiscoveryFailedErrorGroups(err)
	for gv := range k.failed {
		keepGroup(known, k.known, gv)
	}
	k.known, k.read = known, k.clock.Now()
	return ctx.Err()
}

func keepGroup(into, from map[schema.GroupVersionKind]Kind, gv schema.GroupVersion) {
	for gvk, kind := range from {
		if gvk.GroupVersion() == gv {
			into[gvk] = kind
		}
	}
}

func addKinds(known map[schema.GroupVersionKind]Kind, list *metav1.APIResourceList) {
	gv, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return
	}
	status := map[string]bool{}
	for _, r := range list.APIResources {
		if name, found := strings.CutSuffix(r.Name, "/status"); found {
			status[name] = true
		}
	}
	for _, r := range list.APIResources {
		if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "patch") && !slices.Contains(r.Verbs, "create") {
			continue
		}
		known[gv.WithKind(r.Kind)] = Kind{Resource: gv.WithResource(r.Name), Namespaced: r.Namespaced, Status: status[r.Name]}
	}
}

// kindGone tells whether an answer means that a path is not served any more,
// rather than that one object is missing.
func kindGone(err error) bool {
	if !apierrors.IsNotFound(err) {
		return false
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && (status.ErrStatus.Details == nil || status.ErrStatus.Details.Name == "")
}

// IsNoKind tells whether err says that the cluster does not serve a kind.
func IsNoKind(err error) bool {
	_, ok := errors.AsType[*NoKindError](err)
	return ok
}
