// Package v1alpha1 holds the kinds of the API group fleet.cattle.io/v1alpha1.
//
// Manifests written for Rancher Fleet 0.16 apply unchanged. Fields that only
// Flotilla has are optional, and their comment begins with "Flotilla:".
//
// +kubebuilder:object:generate=true
// +groupName=fleet.cattle.io
package v1alpha1
