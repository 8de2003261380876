package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-sh/flotilla/internal/digest"
	"github.com/flotilla-sh/flotilla/internal/fault"
)

// dressPrefix begins the field managers of labels and annotations that bundles
// set on the namespace they deploy into: it is not theirs, and what they set on
// it is told apart from what they have.
const dressPrefix = "flotilla-ns-"

// Dress is what a bundle sets on the namespace that it deploys into.
type Dress struct {
	Namespace           string
	Labels, Annotations map[string]string
}

// Dressed is a namespace on which a bundle has set something, or may have.
type Dressed struct {
	Namespace string `json:"ns"`
	// UID is the namespace that was dressed, Digest is of what was set; both
	// are empty where that was only intended.
	UID    string `json:"uid,omitempty"`
	Digest string `json:"d,omitempty"`
}

func (d Dress) empty() bool { return len(d.Labels)+len(d.Annotations) == 0 }

func (d Dress) ref() Ref { return namespaceRef(d.Namespace) }

// Worn tells whether a dress was put on, as far as is known.
func (d Dress) Worn(all []Dressed) bool {
	known, _ := dressedIn(all, d.Namespace)
	sum, err := digest.OfJSON(d.fields())
	return err == nil && !d.empty() && known.Digest == sum[:32]
}

// Object is the namespace with nothing but the dress.
func (d Dress) Object() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(d.ref().GVK())
	obj.SetName(d.Namespace)
	if len(d.Labels) > 0 {
		obj.SetLabels(d.Labels)
	}
	if len(d.Annotations) > 0 {
		obj.SetAnnotations(d.Annotations)
	}
	return obj
}

func namespaceRef(name string) Ref { return Ref{Version: "v1", Kind: "Namespace", Name: name} }

// fields are the labels and annotations by their path, for people.
func (d Dress) fields() map[string]string {
	out := make(map[string]string, len(d.Labels)+len(d.Annotations))
	for key, value := range d.Labels {
		out["label "+key] = value
	}
	for key, value := range d.Annotations {
		out["annotation "+key] = value
	}
	return out
}

// body is what is applied to the namespace with this UID.
func (d Dress) body(uid types.UID) ([]byte, error) {
	meta := map[string]any{"name": d.Namespace, "uid": uid}
	if len(d.Labels) > 0 {
		meta["labels"] = d.Labels
	}
	if len(d.Annotations) > 0 {
		meta["annotations"] = d.Annotations
	}
	return json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
}

// Dressing is what the bundle may have set on namespaces once the plan has
// begun.
func (p *Plan) Dressing() []Dressed {
	d := &p.deployment
	out := slices.Clone(d.Dressed)
	if _, known := dressedIn(out, d.Dress.Namespace); !known && !d.Dress.empty() {
		out = append(out, Dressed{Namespace: d.Dress.Namespace})
	}
	return out
}

func dressedIn(all []Dressed, namespace string) (Dressed, bool) {
	i := slices.IndexFunc(all, func(d Dressed) bool { return d.Namespace == namespace })
	if i < 0 {
		return Dressed{}, false
	}
	return all[i], true
}

// dress sets what the bundle wants on its namespace, where it has not done so
// yet. A failure stops nothing else.
func (r *run) dress(ctx context.Context) {
	d := &r.plan.deployment
	if d.Dress.empty() || ctx.Err() != nil {
		return
	}
	sum, err := digest.OfJSON(d.Dress.fields())
	if err != nil {
		r.undressable(err)
		return
	}
	worn := d.Dress.Worn(r.result.Dressed)
	if worn && !d.Options.Reapply && !r.bare.Load() && !d.live(d.Dress.ref()).Changed {
		return
	}
	uid, err := r.putOn(ctx, worn)
	if err != nil {
		r.undressable(err)
		return
	}
	r.bare.Store(false)
	r.result.Dressed = slices.DeleteFunc(r.result.Dressed, func(other Dressed) bool { return other.Namespace == d.Dress.Namespace })
	r.result.Dressed = append(r.result.Dressed, Dressed{Namespace: d.Dress.Namespace, UID: string(uid), Digest: sum[:32]})
}

// undressable notes why the namespace is not as wanted. Of one run the last word
// counts.
func (r *run) undressable(err error) {
	ref := r.plan.deployment.Dress.ref()
	r.result.Failures = slices.DeleteFunc(r.result.Failures, func(f Failure) bool { return f.Ref == ref && errors.Is(f.Err, r.undressed) })
	r.undressed = rejected(item{ref: ref}, err)
	r.result.Failures = append(r.result.Failures, Failure{Ref: ref, Err: r.undressed})
}

// putOn applies what is wanted to the live namespace, and returns its UID. What
// was worn before is taken back from anybody but another bundle.
func (r *run) putOn(ctx context.Context, worn bool) (types.UID, error) {
	d := &r.plan.deployment
	for range attempts {
		head, err := r.namespace(ctx, d.Dress.Namespace)
		if err != nil {
			return "", err
		}
		force := d.Options.TakeOwnership || worn && !dressedByAnother(d.Dress, head, d.Owner)
		if err := conflictOf(d.Dress, head, d.Owner, force); err != nil {
			return "", err
		}
		body, err := d.Dress.body(head.UID)
		if err != nil {
			return "", err
		}
		_, err = r.engine.client.patch(ctx, d.Dress.ref(), DressManager(d.Owner), body, force)
		if err == nil {
			return head.UID, nil
		}
		if !guardFailed(err) {
			return "", err
		}
	}
	return "", fmt.Errorf("it changed %d times while its labels were applied; trying again later", attempts)
}

// namespace reads the head of a namespace, which is made where that is wanted.
func (r *run) namespace(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	head, err := r.engine.client.Head(ctx, namespaceRef(name))
	if apierrors.IsNotFound(err) && r.plan.deployment.Options.CreateNamespace {
		if err := r.createNamespace(ctx, name); err != nil {
			return nil, err
		}
		head, err = r.engine.client.Head(ctx, namespaceRef(name))
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, fault.Wait(kindRetry, ReasonNoNamespace, fmt.Errorf("it does not exist, so that namespaceLabels and namespaceAnnotations cannot be set: create it"))
	case err != nil:
		return nil, err
	case head.DeletionTimestamp != nil:
		return nil, fault.Wait(namespaceRetry, ReasonTerminating, fmt.Errorf("it is being deleted; its labels are set once it is there again"))
	}
	return head, nil
}

// DressManager is the field manager of what a bundle sets on its namespace.
func DressManager(owner Owner) string { return dressPrefix + owner.Label }

// dressedByAnother tells whether another bundle has set one of the labels and
// annotations to something else.
func dressedByAnother(want Dress, live *metav1.PartialObjectMetadata, owner Owner) bool {
	have := Dress{Labels: live.Labels, Annotations: live.Annotations}.fields()
	for field, value := range want.fields() {
		if now, set := have[field]; !set || now == value {
			continue
		}
		others, _ := settersOf(live, field, DressManager(owner))
		if slices.ContainsFunc(others, func(manager string) bool { return strings.HasPrefix(manager, dressPrefix) }) {
			return true
		}
	}
	return false
}

// conflictOf says which label or annotation of a namespace somebody else has set
// to another value.
func conflictOf(want Dress, live *metav1.PartialObjectMetadata, owner Owner, force bool) error {
	have := Dress{Labels: live.Labels, Annotations: live.Annotations}.fields()
	var conflicts []string
	wanted := want.fields()
	for _, field := range slices.Sorted(maps.Keys(wanted)) {
		value, set := have[field]
		if !set || value == wanted[field] {
			continue
		}
		others, ours := settersOf(live, field, DressManager(owner))
		if slices.Contains(others, owner.Manager) {
			return fault.Stall(ReasonOwned, fmt.Errorf("its %s is in this bundle twice: as %q in the bundle's own Namespace object, as %q in its options: take it out of one of the two",
				field, value, wanted[field]))
		}
		if len(others) > 0 || !ours {
			conflicts = append(conflicts, fmt.Sprintf("its %s was set to %q by %s", field, value, setBy(others)))
		}
	}
	if len(conflicts) == 0 || force {
		return nil
	}
	return fault.Wait(ownedRetry, ReasonOwned, fmt.Errorf("%s: set helm.takeOwnership to take it over, or take it out of namespaceLabels and namespaceAnnotations",
		strings.Join(conflicts, "; ")))
}

func setBy(managers []string) string {
	if len(managers) == 0 {
		return "somebody else"
	}
	return strings.Join(managers, ", ")
}

// settersOf returns who else has set a label or annotation, and whether manager
// has.
func settersOf(live *metav1.PartialObjectMetadata, field, manager string) (others []string, ours bool) {
	kind, key, _ := strings.Cut(field, " ")
	for _, e := range live.ManagedFields {
		if !setsMetadata(e, kind+"s", key) {
			continue
		}
		if e.Manager == manager {
			ours = true
		} else if !slices.Contains(others, e.Manager) {
			others = append(others, e.Manager)
		}
	}
	slices.Sort(others)
	return others, ours
}

// undress takes off what is set on namespaces that are not the bundle's any more.
func (r *run) undress(ctx context.Context) {
	d := &r.plan.deployment
	kept, worn := dressedIn(r.result.Dressed, d.Dress.Namespace)
	worn = worn && !d.Dress.empty()
	former := slices.Clone(r.result.Dressed)
	if worn {
		former = slices.DeleteFunc(former, func(other Dressed) bool { return other.Namespace == kept.Namespace })
	}
	left, failures := r.engine.Undress(ctx, d.Owner, former)
	if worn {
		left = append(left, kept)
	}
	r.result.Dressed, r.result.Failures = left, append(r.result.Failures, failures...)
}

// Undress takes off what a bundle has set on namespaces, and returns those where
// it could not. A namespace that is gone, or goes, needs nothing.
func (e *Engine) Undress(ctx context.Context, owner Owner, from []Dressed) (left []Dressed, failures []Failure) {
	for _, d := range from {
		if err := e.takeOffDress(ctx, owner, d.Namespace); err != nil {
			left = append(left, d)
			failures = append(failures, Failure{Ref: namespaceRef(d.Namespace), Err: rejected(item{ref: namespaceRef(d.Namespace)}, err)})
		}
	}
	return left, failures
}

func (e *Engine) takeOffDress(ctx context.Context, owner Owner, namespace string) error {
	head, err := e.client.Head(ctx, namespaceRef(namespace))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if head.DeletionTimestamp != nil || !applies(head.ManagedFields, DressManager(owner)) {
		return nil
	}
	body, err := Dress{Namespace: namespace}.body(head.UID)
	if err != nil {
		return err
	}
	_, err = e.client.patch(ctx, namespaceRef(namespace), DressManager(owner), body, false)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
