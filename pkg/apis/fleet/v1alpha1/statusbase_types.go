package v1alpha1

// StatusBase is what the status of GitRepo and HelmOp have in common.
type StatusBase struct {
	// ReadyClusters is the number of clusters where all deployments are ready.
	// +optional
	ReadyClusters int `json:"readyClusters,omitempty"`
	// DesiredReadyClusters is the number of clusters that should be ready.
	// +optional
	DesiredReadyClusters int `json:"desiredReadyClusters,omitempty"`
	// Summary counts the deployments by state.
	// +optional
	Summary BundleSummary `json:"summary,omitempty,omitzero"`
	// Display is what kubectl shows.
	// +optional
	Display StatusDisplay `json:"display,omitempty,omitzero"`
	// Conditions are observations about the object.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
	// Resources are the objects on the clusters that are not ready.
	// +optional
	// +listType=atomic
	Resources []Resource `json:"resources,omitempty"`
	// ResourceCounts counts the objects by state.
	// +optional
	ResourceCounts ResourceCounts `json:"resourceCounts,omitempty,omitzero"`
	// PerClusterResourceCounts counts the objects of each cluster by state.
	// +optional
	PerClusterResourceCounts map[string]*ResourceCounts `json:"perClusterResourceCounts,omitempty"`
}

// StatusDisplay is what kubectl shows of a GitRepo or HelmOp.
type StatusDisplay struct {
	// ReadyBundleDeployments is "ready/wanted" in deployments.
	// +optional
	ReadyBundleDeployments string `json:"readyBundleDeployments,omitempty"`
	// State is the worst state of the deployments; empty where all are ready.
	// +optional
	State string `json:"state,omitempty"`
	// Message says what is the matter.
	// +optional
	Message string `json:"message,omitempty"`
	// Error says that the message is of an error.
	// +optional
	Error bool `json:"error,omitempty"`
}

// Resource is an object on some clusters.
type Resource struct {
	// APIVersion is the object's API version.
	// +optional
	// +nullable
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind is the object's kind.
	// +optional
	// +nullable
	Kind string `json:"kind,omitempty"`
	// Type is the kind, qualified for Rancher's user interface.
	// +optional
	Type string `json:"type,omitempty"`
	// ID is the namespace/name of the object.
	// +optional
	// +nullable
	ID string `json:"id,omitempty"`
	// Namespace is the object's namespace.
	// +optional
	// +nullable
	Namespace string `json:"namespace,omitempty"`
	// Name is the object's name.
	// +optional
	// +nullable
	Name string `json:"name,omitempty"`
	// IncompleteState says that not all is known.
	// +optional
	IncompleteState bool `json:"incompleteState,omitempty"`
	// State is the state of the object.
	// +optional
	State string `json:"state,omitempty"`
	// Error says that the object has failed.
	// +optional
	Error bool `json:"error,omitempty"`
	// Transitioning says that the object is on its way.
	// +optional
	Transitioning bool `json:"transitioning,omitempty"`
	// Message says what is the matter.
	// +optional
	// +nullable
	Message string `json:"message,omitempty"`
	// PerClusterState lists the clusters by the object's state on them.
	// +optional
	// +nullable
	PerClusterState PerClusterState `json:"perClusterState,omitempty,omitzero"`
}

// PerClusterState lists clusters by the state of an object on them.
type PerClusterState struct {
	// Ready are clusters where the object is as wanted.
	// +optional
	// +listType=atomic
	Ready []string `json:"ready,omitempty"`
	// WaitApplied are clusters where the object was not applied yet.
	// +optional
	// +listType=atomic
	WaitApplied []string `json:"waitApplied,omitempty"`
	// Pending are clusters without the deployment.
	// +optional
	// +listType=atomic
	Pending []string `json:"pending,omitempty"`
	// Modified are clusters where the object was changed.
	// +optional
	// +listType=atomic
	Modified []string `json:"modified,omitempty"`
	// Orphaned are clusters where the object should not be.
	// +optional
	// +listType=atomic
	Orphaned []string `json:"orphaned,omitempty"`
	// Missing are clusters where the object is not there.
	// +optional
	// +listType=atomic
	Missing []string `json:"missing,omitempty"`
	// Unknown are clusters where the object's state is not known.
	// +optional
	// +listType=atomic
	Unknown []string `json:"unknown,omitempty"`
	// NotReady are clusters where the object is not ready.
	// +optional
	// +listType=atomic
	NotReady []string `json:"notReady,omitempty"`
}
