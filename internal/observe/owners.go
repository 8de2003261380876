package observe

import (
	"github.com/fluxcd/pkg/ssa"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// writers returns who wrote the fields that manager has lost: those that it
// would have in the dry run and has not in the live object. Nobody is named for
// fields that were removed; the API server does not record that.
func writers(wanted, live []metav1.ManagedFieldsEntry, manager string) []fleet.FieldOwner {
	lost := setOf(wanted, manager).Difference(setOf(live, manager)).Leaves()
	var out []fleet.FieldOwner
	for _, e := range live {
		if e.FieldsV1 == nil || e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply {
			continue
		}
		set, err := ssa.FieldsToSet(*e.FieldsV1)
		if err != nil || set.Leaves().Intersection(lost).Empty() {
			continue
		}
		out = append(out, fleet.FieldOwner{Manager: e.Manager, Operation: string(e.Operation), Time: e.Time})
	}
	return out
}

// setOf returns the fields that manager has applied.
func setOf(entries []metav1.ManagedFieldsEntry, manager string) *fieldpath.Set {
	for _, e := range entries {
		if e.Manager != manager || e.Operation != metav1.ManagedFieldsOperationApply || e.Subresource != "" || e.FieldsV1 == nil {
			continue
		}
		if set, err := ssa.FieldsToSet(*e.FieldsV1); err == nil {
			return &set
		}
	}
	return fieldpath.NewSet()
}
