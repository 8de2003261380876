package apply

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"sort"

	"github.com/fluxcd/pkg/ssa"
	ssautil "github.com/fluxcd/pkg/ssa/utils"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-sh/flotilla/internal/digest"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Plan is a deployment whose objects have their place: what is about to be
// applied. Its intent is to be stored before, so that nothing is lost when the
// program ends in between.
type Plan struct {
	deployment Deployment
	items      []item
	hooks      []hookItem
	failures   []Failure
	crds       map[schema.GroupVersionKind]bool
}

// item is one object that is ready to be applied.
type item struct {
	obj    *unstructured.Unstructured
	ref    Ref
	digest string
	health bool
	// secret is true where messages must not repeat its values.
	secret bool
	// wave is when it is applied: after all objects of lower waves are ready.
	wave int
}

// Plan gives each object its namespace and the marks of its owner, and sorts
// the objects into apply order. An object without a place is a failure of its
// own. It writes nothing.
func (e *Engine) Plan(ctx context.Context, d Deployment) (*Plan, error) {
	p := &Plan{deployment: d, crds: definedKinds(d.Objects)}
	seen := map[Ref]bool{}
	for _, obj := range d.Objects {
		h, isHook := hookOf(obj)
		if isHook && len(h.Events) == 0 {
			continue
		}
		if err := e.place(ctx, p, obj); err != nil {
			if !isObjectError(err) {
				return nil, err
			}
			p.failures = append(p.failures, Failure{Ref: RefOf(obj), Err: err})
			continue
		}
		it, err := newItem(obj, d.Owner)
		it.secret = d.Options.Secret || ssautil.IsSecret(obj)
		if err == nil && !isHook {
			it.wave, err = waveOf(obj)
		}
		if err == nil && isHook {
			p.hooks = append(p.hooks, hookItem{item: it, Hook: h})
			continue
		}
		if err == nil && seen[it.ref.Identity()] {
			err = stall(ReasonTwice, fmt.Errorf("the bundle has it twice: remove one of the two"))
		}
		if err != nil {
			p.failures = append(p.failures, Failure{Ref: RefOf(obj), Err: err})
			continue
		}
		seen[it.ref.Identity()] = true
		p.items = append(p.items, it)
	}
	p.sort()
	return p, nil
}

// Intent is what the bundle may have on the cluster once the plan has begun:
// everything from before and everything that is about to be applied.
func (p *Plan) Intent() Inventory {
	known := p.deployment.Previous.index()
	intent := make(Inventory, 0, len(p.items))
	for _, it := range p.items {
		entry, ok := known[it.ref.Identity()]
		if !ok {
			entry = Entry{Ref: it.ref, Health: it.health}
		}
		intent = append(intent, entry)
	}
	return append(p.deployment.Previous.missingFrom(intent), intent...)
}

// Find returns the object ref as it was applied; it does not know an object
// that was applied in another form, or not at all yet.
func (p *Plan) Find(ref Ref) (*unstructured.Unstructured, bool) {
	it, ok := p.find(ref)
	if !ok {
		return nil, false
	}
	i := slices.IndexFunc(p.deployment.Previous, func(e Entry) bool { return e.Identity() == ref.Identity() })
	return it.obj, i >= 0 && p.deployment.Previous[i].Digest == it.digest
}

func (p *Plan) find(ref Ref) (item, bool) {
	i := slices.IndexFunc(p.items, func(it item) bool { return it.ref.Identity() == ref.Identity() })
	if i < 0 {
		return item{}, false
	}
	return p.items[i], true
}

func (p *Plan) sort() {
	slices.SortStableFunc(p.hooks, compareHooks)
	objects := make([]*unstructured.Unstructured, 0, len(p.items))
	byObject := make(map[*unstructured.Unstructured]item, len(p.items))
	for _, it := range p.items {
		objects = append(objects, it.obj)
		byObject[it.obj] = it
	}
	sort.Stable(ssa.SortableUnstructureds(objects))
	for i, obj := range objects {
		p.items[i] = byObject[obj]
	}
	slices.SortStableFunc(p.items, func(a, b item) int { return cmp.Compare(stageOf(a), stageOf(b)) })
	slices.SortFunc(p.failures, func(a, b Failure) int { return cmp.Or(a.Ref.Compare(b.Ref)) })
}

// place sets the namespace of obj as its kind and the options want it.
func (e *Engine) place(ctx context.Context, p *Plan, obj *unstructured.Unstructured) error {
	namespaced, ok := p.crds[obj.GroupVersionKind()]
	if !ok {
		kind, err := e.client.Kinds.Lookup(ctx, obj.GroupVersionKind())
		if err != nil {
			return noKind(err)
		}
		namespaced = kind.Namespaced
	}
	o := p.deployment.Options
	if namespaced {
		obj.SetNamespace(cmp.Or(o.Namespace, obj.GetNamespace(), o.DefaultNamespace, metav1.NamespaceDefault))
		return nil
	}
	if o.Namespace != "" {
		return stall(ReasonScope, fmt.Errorf("it has no namespace, and the bundle's option namespace forces everything into %q: use defaultNamespace, or move the object to another bundle", o.Namespace))
	}
	obj.SetNamespace("")
	return nil
}

// newItem puts the owner's marks on obj and takes off what only a server sets.
func newItem(obj *unstructured.Unstructured, owner Owner) (item, error) {
	ssautil.RemoveCABundleFromCRD(obj)
	for _, field := range []string{"creationTimestamp", "managedFields", "resourceVersion", "uid", "generation", "selfLink"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	delete(obj.Object, "status")
	if err := encodeStringData(obj); err != nil {
		return item{}, stall(ReasonRejected, err)
	}
	labels := orEmpty(obj.GetLabels())
	labels[fleet.DeploymentLabel] = owner.Label
	obj.SetLabels(labels)
	annotations := orEmpty(obj.GetAnnotations())
	annotations[fleet.BundleAnnotation] = owner.Bundle
	if owner.Hub != "" {
		annotations[fleet.HubAnnotation] = owner.Hub
	}
	obj.SetAnnotations(annotations)
	sum, err := digest.OfJSON(obj.Object)
	if err != nil {
		return item{}, stall(ReasonRejected, err)
	}
	return item{obj: obj, ref: RefOf(obj), digest: sum[:32], health: hasHealth(obj)}, nil
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// encodeStringData moves a Secret's stringData to data, as the API server
// would: it keeps no stringData, so that nobody could own its fields.
func encodeStringData(obj *unstructured.Unstructured) error {
	if !ssautil.IsSecret(obj) {
		return nil
	}
	plain, found, err := unstructured.NestedMap(obj.Object, "stringData")
	if err != nil {
		return fmt.Errorf("stringData is no map of strings")
	}
	if !found {
		return nil
	}
	for key, value := range plain {
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("stringData.%s is no string: quote it", key)
		}
		if err := unstructured.SetNestedField(obj.Object, base64.StdEncoding.EncodeToString([]byte(text)), "data", key); err != nil {
			return fmt.Errorf("data is no map of strings")
		}
	}
	delete(obj.Object, "stringData")
	return nil
}

// definedKinds returns the kinds that the bundle's own CRDs define, and
// whether each is namespaced.
func definedKinds(objects []*unstructured.Unstructured) map[schema.GroupVersionKind]bool {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, obj := range objects {
		if !ssautil.IsCRD(obj) {
			continue
		}
		group, _, _ := unstructured.NestedString(obj.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(obj.Object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(obj.Object, "spec", "scope")
		versions, _, _ := unstructured.NestedSlice(obj.Object, "spec", "versions")
		for _, v := range versions {
			version, ok := v.(map[string]any)
			if !ok || version["served"] == false {
				continue
			}
			name, _ := version["name"].(string)
			kinds[schema.GroupVersionKind{Group: group, Version: name, Kind: kind}] = scope == "Namespaced"
		}
	}
	return kinds
}

// hasHealth tells whether an object has a state to wait for; the built-in kinds
// without one are never read for it.
func hasHealth(obj *unstructured.Unstructured) bool {
	gk := obj.GroupVersionKind().GroupKind()
	switch gk.Group {
	case "rbac.authorization.k8s.io", "admissionregistration.k8s.io", "networking.k8s.io", "scheduling.k8s.io",
		"storage.k8s.io", "node.k8s.io", "discovery.k8s.io", "coordination.k8s.io", "flowcontrol.apiserver.k8s.io":
		return false
	case "":
		return coreHasHealth(obj)
	case "batch":
		return gk.Kind != "CronJob"
	}
	return true
}

func coreHasHealth(obj *unstructured.Unstructured) bool {
	switch obj.GetKind() {
	case "Pod", "PersistentVolumeClaim", "ReplicationController":
		return true
	}
	return false
}
