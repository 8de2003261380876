package sim

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/dynamic"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"

	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/observe"
	engine "github.com/flotilla-sh/flotilla/internal/render"
)

// revision counts writes to clusters that are not there.
var revision atomic.Int64

func written(name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), ResourceVersion: strconv.FormatInt(revision.Add(1), 10), Generation: 1,
	}}
}

// metas takes what the agent applies.
type metas struct {
	metadata.Interface
	kinds *Kinds
}

// Resource returns objects of a kind.
func (m metas) Resource(of schema.GroupVersionResource) metadata.Getter {
	return meta{kinds: m.kinds, crds: of.Resource == "customresourcedefinitions"}
}

type meta struct {
	metadata.Getter
	kinds *Kinds
	crds  bool
}

// Namespace returns the objects of a namespace.
func (m meta) Namespace(string) metadata.ResourceInterface { return m }

// Patch takes a write; one of a definition makes its kinds known.
func (m meta) Patch(_ context.Context, name string, _ types.PatchType, body []byte, _ metav1.PatchOptions, _ ...string) (*metav1.PartialObjectMetadata, error) {
	if m.crds {
		if err := m.kinds.define(body); err != nil {
			return nil, err
		}
	}
	return written(name), nil
}

// Get returns an object that is there.
func (meta) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*metav1.PartialObjectMetadata, error) {
	return written(name), nil
}

// Delete takes a delete.
func (meta) Delete(context.Context, string, metav1.DeleteOptions, ...string) error { return nil }

// objects takes namespaces that are created.
type objects struct{ dynamic.Interface }

// Resource returns objects of a kind.
func (objects) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return object{}
}

type object struct {
	dynamic.NamespaceableResourceInterface
}

// Namespace returns the objects of a namespace.
func (o object) Namespace(string) dynamic.ResourceInterface { return o }

// Create takes an object.
func (object) Create(_ context.Context, o *unstructured.Unstructured, _ metav1.CreateOptions, _ ...string) (*unstructured.Unstructured, error) {
	return o, nil
}

// Get returns a definition that is established.
func (object) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": name},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Established", "status": "True"},
		}},
	}}, nil
}

// secrets takes what the agent stores of its state.
type secrets struct{ typedcorev1.SecretInterface }

// Create takes a Secret.
func (secrets) Create(_ context.Context, s *corev1.Secret, _ metav1.CreateOptions) (*corev1.Secret, error) {
	return s, nil
}

// Patch takes a change of a Secret.
func (secrets) Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (*corev1.Secret, error) {
	return &corev1.Secret{}, nil
}

// Delete takes a delete.
func (secrets) Delete(context.Context, string, metav1.DeleteOptions) error { return nil }

// known is a version.
type known struct{ version *version.Info }

// ServerVersion returns it.
func (k known) ServerVersion() (*version.Info, error) { return k.version, nil }

// renderer refuses: what a cluster renders is measured on real ones.
type renderer struct{}

// Render says so.
func (renderer) Render(context.Context, engine.Request) (*engine.Result, error) {
	return nil, fault.Stall("Simulated", errors.New("a simulated cluster renders nothing"))
}

// observer finds everything ready that was applied.
type observer struct {
	mu    sync.Mutex
	found map[string]map[apply.Ref]observe.Finding
}

// Begin does nothing.
func (o *observer) Begin(apply.Owner) {}

// Applied finds all objects of an inventory ready.
func (o *observer) Applied(_ context.Context, owner apply.Owner, inventory apply.Inventory, _ map[apply.Ref]bool) {
	found := make(map[apply.Ref]observe.Finding, len(inventory))
	for _, e := range inventory {
		found[e.Identity()] = observe.Finding{Ref: e.Ref, UID: e.UID, Health: observe.Health{Ready: true}}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.found == nil {
		o.found = map[string]map[apply.Ref]observe.Finding{}
	}
	o.found[owner.Label] = found
}

// Dressed does nothing: nobody edits what is simulated.
func (o *observer) Dressed(apply.Owner, string) {}

// Await does nothing: nothing of what is simulated runs to an end.
func (o *observer) Await(context.Context, apply.Owner, []apply.Ref) {}

// Read does nothing: nothing of what is simulated is out of reach.
func (o *observer) Read(context.Context, string, []apply.Ref) error { return nil }

// Gone forgets a deployment.
func (o *observer) Gone(_ context.Context, label string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.found, label)
}

// Live knows nothing of changes.
func (o *observer) Live(string, apply.Ref) apply.Live { return apply.Live{} }

// Findings returns what was applied.
func (o *observer) Findings(label string) map[apply.Ref]observe.Finding {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.found[label]
}
