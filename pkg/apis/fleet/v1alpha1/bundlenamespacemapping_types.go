package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BundleNamespaceMapping lets bundles of its namespace reach clusters of other namespaces.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=bundlenamespacemappings,categories=fleet
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
type BundleNamespaceMapping struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// BundleSelector selects the bundles; {} selects all, unset none.
	// +optional
	// +nullable
	BundleSelector *metav1.LabelSelector `json:"bundleSelector,omitempty"`
	// NamespaceSelector selects the namespaces; {} selects all, unset none.
	// +optional
	// +nullable
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// Status is what was seen.
	// +optional
	Status ConditionedStatus `json:"status,omitempty,omitzero"`
}

// BundleNamespaceMappingList is a list of BundleNamespaceMapping objects.
//
// +kubebuilder:object:root=true
type BundleNamespaceMappingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []BundleNamespaceMapping `json:"items"`
}

// ConditionedStatus is the status of a kind that has conditions and nothing
// else.
type ConditionedStatus struct {
	// Flotilla: Conditions are observations about the object.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
}
