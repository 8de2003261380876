package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterGroup is a set of clusters, selected by their labels.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clustergroups,categories=fleet
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Clusters-Ready",type=string,JSONPath=`.status.display.readyClusters`
// +kubebuilder:printcolumn:name="Bundles-Ready",type=string,JSONPath=`.status.display.readyBundles`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	// +optional
	Spec ClusterGroupSpec `json:"spec,omitempty,omitzero"`
	// Status is what was seen.
	// +optional
	// +structType=atomic
	Status ClusterGroupStatus `json:"status,omitempty,omitzero"`
}

// ClusterGroupList is a list of ClusterGroup objects.
//
// +kubebuilder:object:root=true
type ClusterGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []ClusterGroup `json:"items"`
}

// ClusterGroupSpec is what is wanted of a cluster group.
type ClusterGroupSpec struct {
	// Selector selects the clusters; {} selects all.
	// +optional
	// +nullable
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// ClusterGroupStatus is what was seen of a cluster group.
type ClusterGroupStatus struct {
	// ClusterCount is the number of clusters in the group.
	// +optional
	ClusterCount int `json:"clusterCount,omitempty"`
	// NonReadyClusterCount is the number of clusters that are not ready.
	// +optional
	NonReadyClusterCount int `json:"nonReadyClusterCount,omitempty"`
	// NonReadyClusters are at most ten clusters that are not ready.
	// +optional
	// +nullable
	// +listType=atomic
	NonReadyClusters []string `json:"nonReadyClusters,omitempty"`
	// Conditions are observations about the object.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
	// Summary counts the deployments by state.
	// +optional
	Summary BundleSummary `json:"summary,omitempty,omitzero"`
	// Display is what kubectl shows.
	// +optional
	Display ClusterGroupDisplay `json:"display,omitempty,omitzero"`
	// ResourceCounts counts the objects by state.
	// +optional
	ResourceCounts ResourceCounts `json:"resourceCounts,omitempty,omitzero"`
}

// ClusterGroupDisplay is what kubectl shows of a cluster group.
type ClusterGroupDisplay struct {
	// ReadyClusters is "ready/all" in clusters, with the names of those that are
	// not.
	// +optional
	// +nullable
	ReadyClusters string `json:"readyClusters,omitempty"`
	// ReadyBundles is "ready/wanted" in deployments.
	// +optional
	// +nullable
	ReadyBundles string `json:"readyBundles,omitempty"`
	// State is the worst state of the deployments.
	// +optional
	// +nullable
	State string `json:"state,omitempty"`
}
