package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GitTarget selects clusters. All criteria that are given must hold; one
// without any selects nothing.
type GitTarget struct {
	// Name is the name of the target.
	// +optional
	// +nullable
	Name string `json:"name,omitempty"`
	// ClusterName is the name of one cluster.
	// +optional
	// +nullable
	ClusterName string `json:"clusterName,omitempty"`
	// ClusterSelector selects clusters by their labels; {} selects all.
	// +optional
	// +nullable
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// ClusterGroup is the name of a cluster group.
	// +optional
	// +nullable
	ClusterGroup string `json:"clusterGroup,omitempty"`
	// ClusterGroupSelector selects cluster groups by their labels.
	// +optional
	// +nullable
	ClusterGroupSelector *metav1.LabelSelector `json:"clusterGroupSelector,omitempty"`
}

// BundleTarget selects clusters and says how the bundle is deployed to them.
type BundleTarget struct {
	BundleDeploymentOptions `json:",inline"`
	// Name is the name of the target; empty means target000 and so on.
	// +optional
	// +nullable
	Name string `json:"name,omitempty"`
	// ClusterName is the name of one cluster.
	// +optional
	// +nullable
	ClusterName string `json:"clusterName,omitempty"`
	// ClusterSelector selects clusters by their labels; {} selects all.
	// +optional
	// +nullable
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// ClusterGroup is the name of a cluster group.
	// +optional
	// +nullable
	ClusterGroup string `json:"clusterGroup,omitempty"`
	// ClusterGroupSelector selects cluster groups by their labels.
	// +optional
	// +nullable
	ClusterGroupSelector *metav1.LabelSelector `json:"clusterGroupSelector,omitempty"`
	// DoNotDeploy leaves out the clusters that this target selects.
	// +optional
	DoNotDeploy bool `json:"doNotDeploy,omitempty"`
}

// BundleTargetRestriction is one entry of the list of clusters that a bundle
// may reach. It is a copy of a target of the GitRepo.
type BundleTargetRestriction struct {
	// Name is the name of the target.
	// +optional
	// +nullable
	Name string `json:"name,omitempty"`
	// ClusterName is the name of one cluster.
	// +optional
	// +nullable
	ClusterName string `json:"clusterName,omitempty"`
	// ClusterSelector selects clusters by their labels; {} selects all.
	// +optional
	// +nullable
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// ClusterGroup is the name of a cluster group.
	// +optional
	// +nullable
	ClusterGroup string `json:"clusterGroup,omitempty"`
	// ClusterGroupSelector selects cluster groups by their labels.
	// +optional
	// +nullable
	ClusterGroupSelector *metav1.LabelSelector `json:"clusterGroupSelector,omitempty"`
}
