package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/ssa"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	helmReleaseAnnotation = "meta.helm.sh/release-name"
	lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"
)

// appliers are the programs, by the begin of their names, that apply whole
// objects: Helm, kubectl in all its forms, Rancher Fleet's agent, what the API
// server noted for objects from before it kept field managers.
var appliers = []string{"helm", "kubectl", "fleetagent", "fleet-agent", "before-first-apply"}

// signatures are the fields that only the program writes that has the whole
// object: whoever has one of them is an applier, whatever it is called.
var signatures = []fieldpath.Path{
	fieldpath.MakePathOrDie("metadata", "annotations", helmReleaseAnnotation),
	fieldpath.MakePathOrDie("metadata", "annotations", lastAppliedAnnotation),
	fieldpath.MakePathOrDie("metadata", "annotations", fleet.ObjectSetIDAnnotation),
	fieldpath.MakePathOrDie("metadata", "labels", fleet.ObjectSetHashLabel),
	fieldpath.MakePathOrDie("metadata", "annotations", fleet.BundleAnnotation),
}

// adopt moves what earlier appliers own to this bundle: fields that are not
// wanted any more would stay for ever otherwise. What controllers and
// subresources have written stays theirs. It tells whether the object was as it
// was read; otherwise it is to be judged anew.
func (r *run) adopt(ctx context.Context, it item, head *metav1.PartialObjectMetadata) (bool, error) {
	body, err := adoption(head, r.plan.deployment.Owner.Manager)
	if err != nil {
		return false, fmt.Errorf("take over its fields: %w", err)
	}
	if body == nil {
		return true, nil
	}
	err = r.engine.client.edit(ctx, it.ref, types.JSONPatchType, body)
	if apierrors.IsConflict(err) {
		return false, nil
	}
	return err == nil, err
}

// adoption returns the JSON patch that gives manager the fields of the earlier
// appliers of an object, or nothing where there are none.
func adoption(head *metav1.PartialObjectMetadata, manager string) ([]byte, error) {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetManagedFields(head.ManagedFields)
	former, err := formerManagers(head.ManagedFields)
	if err != nil {
		return nil, err
	}
	patches, err := ssa.PatchReplaceFieldsManagers(obj, former, manager)
	if err != nil || len(patches) == 0 {
		return nil, err
	}
	// A write in between would be lost from the list of managers.
	steps := []any{map[string]any{"op": "replace", "path": "/metadata/resourceVersion", "value": head.ResourceVersion}}
	for _, p := range patches {
		steps = append(steps, p)
	}
	return json.Marshal(steps)
}

// formerManagers are the programs whose fields an adoption takes over.
func formerManagers(entries []metav1.ManagedFieldsEntry) ([]ssa.FieldManager, error) {
	var out []ssa.FieldManager
	add := func(name string, exact bool) {
		for _, operation := range []metav1.ManagedFieldsOperationType{metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate} {
			out = append(out, ssa.FieldManager{Name: name, ExactMatch: exact, OperationType: operation})
		}
	}
	for _, name := range appliers {
		add(name, false)
	}
	for _, e := range entries {
		signed, err := hasSignature(e)
		if err != nil {
			return nil, err
		}
		if signed || isBundle(e.Manager) {
			add(e.Manager, true)
		}
	}
	return out, nil
}

// isBundle tells whether a field manager applies the objects of a bundle, rather
// than what one sets on a namespace that it does not have.
func isBundle(manager string) bool {
	return strings.HasPrefix(manager, "flotilla-") && !strings.HasPrefix(manager, dressPrefix)
}

// setsMetadata tells whether an entry has set a label or annotation.
func setsMetadata(e metav1.ManagedFieldsEntry, kind, key string) bool {
	if e.FieldsV1 == nil || e.Subresource != "" {
		return false
	}
	set, err := ssa.FieldsToSet(*e.FieldsV1)
	return err == nil && set.Has(fieldpath.MakePathOrDie("metadata", kind, key))
}

func hasSignature(e metav1.ManagedFieldsEntry) (bool, error) {
	if e.FieldsV1 == nil || e.Subresource != "" {
		return false, nil
	}
	set, err := ssa.FieldsToSet(*e.FieldsV1)
	if err != nil {
		return false, fmt.Errorf("the fields of %s cannot be read: %w", e.Manager, err)
	}
	return slices.ContainsFunc(signatures, set.Has), nil
}

// applies tells whether manager has applied the object before. It has not where
// the object came back from a backup, which keeps the marks alone.
func applies(entries []metav1.ManagedFieldsEntry, manager string) bool {
	return slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
	})
}
