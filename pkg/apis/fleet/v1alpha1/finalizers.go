package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Finalizer holds a hub object until what it stands for is gone.
const Finalizer = "flotilla.sh/finalizer"

// isFinalizer tells whether a finalizer of a hub object is ours, or one of
// Rancher Fleet's controller. Where we run that one does not, and nobody else
// would take off what it left.
func isFinalizer(name string) bool {
	switch name {
	case Finalizer,
		"fleet.cattle.io/gitrepo-finalizer",
		"fleet.cattle.io/helmop-finalizer",
		"fleet.cattle.io/helmapp-finalizer",
		"fleet.cattle.io/bundle-finalizer",
		"fleet.cattle.io/bundle-deployment-finalizer",
		"fleet.cattle.io/cluster-finalizer",
		"fleet.cattle.io/schedule-finalizer":
		return true
	}
	return false
}

// IsHeld tells whether an object has our finalizer, or one of Rancher Fleet's.
func IsHeld(obj metav1.Object) bool { return slices.ContainsFunc(obj.GetFinalizers(), isFinalizer) }

// Release takes our finalizer and those of Rancher Fleet off an object, and
// tells whether there was one.
func Release(obj metav1.Object) bool {
	if !IsHeld(obj) {
		return false
	}
	obj.SetFinalizers(slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), isFinalizer))
	return true
}
