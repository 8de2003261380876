package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RolloutStrategy says how many clusters may change at the same time.
type RolloutStrategy struct {
	// MaxUnavailable is the number or share of clusters that may be
	// unavailable; unset means 100%.
	// +optional
	// +nullable
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MaxUnavailablePartitions is the number or share of partitions that may be
	// unavailable; unset means 0.
	// +optional
	// +nullable
	MaxUnavailablePartitions *intstr.IntOrString `json:"maxUnavailablePartitions,omitempty"`
	// AutoPartitionSize is the number or share of clusters in a partition where
	// none are defined; unset means 25%.
	// +optional
	// +nullable
	AutoPartitionSize *intstr.IntOrString `json:"autoPartitionSize,omitempty"`
	// AutoPartitionThreshold is the number of clusters from which on partitions
	// are made; unset means 200.
	// +optional
	// +nullable
	AutoPartitionThreshold *int `json:"autoPartitionThreshold,omitempty"`
	// MaxNew is the number of deployments created in one step; unset means 50.
	// +optional
	// +nullable
	MaxNew *int `json:"maxNew,omitempty"`
	// Partitions are rolled out to in this order.
	// +optional
	// +nullable
	// +listType=atomic
	Partitions []Partition `json:"partitions,omitempty"`
}

// Partition is a set of clusters that may change together.
type Partition struct {
	// Name is the name of the partition.
	// +optional
	// +nullable
	Name string `json:"name,omitempty"`
	// MaxUnavailable is the number or share of the partition's clusters that
	// may be unavailable; unset means that of the rollout strategy.
	// +optional
	// +nullable
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
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

// PartitionStatus is the state of one partition of a rollout.
type PartitionStatus struct {
	// Name is the name of the partition.
	// +optional
	// +nullable
	Name string `json:"name,omitempty"`
	// Count is the number of clusters in the partition.
	// +optional
	Count int `json:"count,omitempty"`
	// MaxUnavailable is the number of clusters that may be unavailable.
	// +optional
	MaxUnavailable int `json:"maxUnavailable,omitempty"`
	// Unavailable is the number of clusters that are not up to date or not ready.
	// +optional
	Unavailable int `json:"unavailable,omitempty"`
	// Summary counts the deployments of the partition by state.
	// +optional
	Summary BundleSummary `json:"summary,omitempty,omitzero"`
}
