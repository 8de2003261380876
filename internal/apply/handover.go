package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Leaving returns what the bundle has on the cluster and not in the plan. It is
// empty where an object of the plan has no place, as it may be one of these.
func (p *Plan) Leaving() []Entry {
	if len(p.failures) > 0 {
		return nil
	}
	return p.deployment.Previous.missingFrom(p.wanted())
}

// Wants returns the names of the objects of the plan.
func (p *Plan) Wants() []Ref {
	refs := make([]Ref, 0, len(p.items))
	for _, it := range p.items {
		refs = append(refs, it.ref)
	}
	return refs
}

func (p *Plan) wanted() Inventory {
	out := make(Inventory, 0, len(p.items))
	for _, it := range p.items {
		out = append(out, Entry{Ref: it.ref})
	}
	return out
}

// Without takes objects that were handed over out of what the bundle had.
func (p *Plan) Without(handed []Ref) {
	p.deployment.Previous = p.deployment.Previous.Without(handed)
}

// Undecided says why it is not known whether other bundles want what leaves
// this one; nil says that it is known.
func (p *Plan) Undecided(why error) { p.deployment.Undecided = why }

// Without returns the inventory without some objects.
func (inv Inventory) Without(refs []Ref) Inventory {
	return slices.DeleteFunc(slices.Clone(inv), func(e Entry) bool {
		return slices.ContainsFunc(refs, func(r Ref) bool { return r.Identity() == e.Identity() })
	})
}

// HandOver takes the marks of owner off objects that another bundle wants, so
// that it may have them as they are, and returns which of them are free now.
func (e *Engine) HandOver(ctx context.Context, owner Owner, refs []Ref) ([]Ref, error) {
	var handed []Ref
	for _, ref := range refs {
		head, err := e.client.Head(ctx, ref)
		if IsNoKind(err) || apierrors.IsNotFound(err) {
			handed = append(handed, ref)
			continue
		}
		if err == nil && markOf(head).of(owner) {
			err = e.release(ctx, ref, head, owner.Bundle)
		}
		if err != nil {
			return handed, fmt.Errorf("hand over %s: %w", ref, err)
		}
		handed = append(handed, ref)
	}
	return handed, nil
}

// release takes the bundle's marks off an object that is kept, so that any
// bundle may have it.
func (e *Engine) release(ctx context.Context, ref Ref, head *metav1.PartialObjectMetadata, bundle string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         head.UID,
		"labels":      map[string]any{fleet.DeploymentLabel: nil},
		"annotations": map[string]any{fleet.BundleAnnotation: nil, fleet.HubAnnotation: nil, HeldAnnotation: bundle},
	}})
	if err != nil {
		return err
	}
	if err := e.client.edit(ctx, ref, types.MergePatchType, body); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("keep it: %w", err)
	}
	return nil
}

// ownedError says that another bundle has an object.
type ownedError struct {
	bundle string
	why    string
}

// Error says who has it and what to do.
func (e *ownedError) Error() string { return e.why }

// Asked returns the objects that a bundle could not have because another one of
// the same hub has them: it is asked to hand them over when it drops them.
func Asked(failures []Failure) []Ref {
	var refs []Ref
	for _, f := range failures {
		if AskedOf(f) != "" {
			refs = append(refs, f.Ref)
		}
	}
	return refs
}

// AskedOf returns the bundle of the same hub that has the object of a failure.
func AskedOf(f Failure) string {
	if owned, ok := errors.AsType[*ownedError](f.Err); ok {
		return owned.bundle
	}
	return ""
}
