package v1alpha1

// BundleSummary counts deployments by state.
type BundleSummary struct {
	// NotReady deployments are applied, and not all of their objects are ready.
	// +optional
	NotReady int `json:"notReady,omitempty"`
	// WaitApplied deployments were not applied yet.
	// +optional
	WaitApplied int `json:"waitApplied,omitempty"`
	// ErrApplied deployments could not be applied.
	// +optional
	ErrApplied int `json:"errApplied,omitempty"`
	// OutOfSync deployments are held back at an older content.
	// +optional
	OutOfSync int `json:"outOfSync,omitempty"`
	// Modified deployments were changed on the cluster.
	// +optional
	Modified int `json:"modified,omitempty"`
	// Ready deployments run and are as wanted.
	// +optional
	Ready int `json:"ready"`
	// Pending deployments do not exist yet.
	// +optional
	Pending int `json:"pending,omitempty"`
	// DesiredReady is the number of deployments that should be ready.
	// +optional
	DesiredReady int `json:"desiredReady"`
	// Flotilla: Offline is the number of deployments whose cluster is silent;
	// they are counted here, and in no other state but DesiredReady.
	// +optional
	Offline int `json:"offline,omitempty"`
	// NonReadyResources are at most ten of what is not ready.
	// +optional
	// +nullable
	// +listType=atomic
	NonReadyResources []NonReadyResource `json:"nonReadyResources,omitempty"`
}

// NonReadyResource is a bundle or cluster that is not ready.
type NonReadyResource struct {
	// Name is the name of the bundle, or the namespace/name of the cluster.
	// +optional
	// +nullable
	Name string `json:"name,omitempty"`
	// State is its state.
	// +optional
	// +nullable
	State BundleState `json:"bundleState,omitempty"`
	// Message says what is the matter.
	// +optional
	// +nullable
	Message string `json:"message,omitempty"`
	// ModifiedStatus are objects that were changed on the cluster.
	// +optional
	// +nullable
	// +listType=atomic
	ModifiedStatus []ModifiedStatus `json:"modifiedStatus,omitempty"`
	// NonReadyStatus are objects that are not ready.
	// +optional
	// +nullable
	// +listType=atomic
	NonReadyStatus []NonReadyStatus `json:"nonReadyStatus,omitempty"`
}

// ResourceCounts counts objects by state.
type ResourceCounts struct {
	// Ready objects are as wanted.
	// +optional
	Ready int `json:"ready"`
	// DesiredReady is the number of objects that should be ready.
	// +optional
	DesiredReady int `json:"desiredReady"`
	// WaitApplied objects were not applied yet.
	// +optional
	WaitApplied int `json:"waitApplied,omitempty"`
	// Modified objects were changed on the cluster.
	// +optional
	Modified int `json:"modified,omitempty"`
	// Orphaned objects are there and should not be.
	// +optional
	Orphaned int `json:"orphaned,omitempty"`
	// Missing objects should be there and are not.
	// +optional
	Missing int `json:"missing,omitempty"`
	// Unknown objects are in a state that is not known.
	// +optional
	Unknown int `json:"unknown,omitempty"`
	// NotReady objects are there and not ready.
	// +optional
	NotReady int `json:"notReady,omitempty"`
}
