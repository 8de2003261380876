package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxStatusObjects is the number of entries of ModifiedStatus and
// NonReadyStatus at most.
const MaxStatusObjects = 10

// BundleDeployment is one bundle on one cluster. It lives in the namespace of
// the cluster. The hub writes its spec, the agent its status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=bundledeployments,categories=fleet
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Deployed",type=string,JSONPath=`.status.display.deployed`
// +kubebuilder:printcolumn:name="Monitored",type=string,JSONPath=`.status.display.monitored`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type BundleDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	// +optional
	// +structType=atomic
	Spec BundleDeploymentSpec `json:"spec,omitempty,omitzero"`
	// Status is what was seen.
	// +optional
	// +structType=atomic
	Status BundleDeploymentStatus `json:"status,omitempty,omitzero"`
}

// BundleDeploymentList is a list of BundleDeployments.
//
// +kubebuilder:object:root=true
type BundleDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the BundleDeployments.
	Items []BundleDeployment `json:"items"`
}

// BundleDeploymentSpec is what is wanted of a deployment.
type BundleDeploymentSpec struct {
	// Paused stages changes and does not deploy them.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// StagedOptions are the options that come next.
	// +optional
	StagedOptions BundleDeploymentOptions `json:"stagedOptions,omitempty,omitzero"`
	// StagedDeploymentID is the deployment ID that comes next.
	// +optional
	// +nullable
	StagedDeploymentID string `json:"stagedDeploymentID,omitempty"`
	// Options are the options to deploy with.
	// +optional
	Options BundleDeploymentOptions `json:"options,omitempty,omitzero"`
	// DeploymentID names the content and the options to deploy.
	// +optional
	// +nullable
	DeploymentID string `json:"deploymentID,omitempty"`
	// DependsOn are bundles that must be in an accepted state first.
	// +optional
	// +nullable
	// +listType=atomic
	DependsOn []BundleRef `json:"dependsOn,omitempty"`
	// CorrectDrift puts objects back that were changed on the cluster.
	// +optional
	// +nullable
	CorrectDrift *CorrectDrift `json:"correctDrift,omitempty"`
	// OCIContents says that the content is in a registry.
	// +optional
	OCIContents bool `json:"ociContents,omitempty"`
	// HelmChartOptions say how the agent gets the chart by itself.
	// +optional
	// +nullable
	HelmChartOptions *BundleHelmOptions `json:"helmChartOptions,omitempty"`
	// ValuesHash is the digest of the Helm values, which are kept in a Secret.
	// +optional
	// +nullable
	ValuesHash string `json:"valuesHash,omitempty"`
	// DownstreamResourcesGeneration is raised when a resource that is copied to
	// the cluster has changed.
	// +optional
	DownstreamResourcesGeneration int64 `json:"downstreamResourcesGeneration,omitempty"`
	// OffSchedule holds the deployment while no schedule is open.
	// +optional
	OffSchedule bool `json:"offSchedule,omitempty"`
	// WaitingForValues holds the deployment until its values are there.
	// +optional
	WaitingForValues bool `json:"waitingForValues,omitempty"`

	// Flotilla: Content names the objects to apply.
	// +optional
	// +nullable
	Content *ContentRef `json:"content,omitempty"`
	// Flotilla: Removal is the mark that lets the agent remove the objects.
	// Nothing else does.
	// +optional
	// +nullable
	Removal *Removal `json:"removal,omitempty"`
	// Flotilla: RenderInput is the digest of what was rendered.
	// +optional
	RenderInput string `json:"renderInput,omitempty"`
	// Flotilla: RenderAsked are the questions that the render asked about the
	// cluster.
	// +optional
	// +listType=atomic
	RenderAsked []string `json:"renderAsked,omitempty"`
}

// ContentRef names a stored content.
type ContentRef struct {
	// Digest is the SHA-256 of the root payload, in hex.
	// +optional
	Digest string `json:"digest,omitempty"`
	// Name is the name of the Content object.
	// +optional
	Name string `json:"name,omitempty"`
	// Source says that the content is the bundle's source with its merged
	// options, which the agent renders on its cluster.
	// +optional
	Source bool `json:"source,omitempty"`
	// Registry is the name of the Secret in the deployment's namespace with the
	// registry that has the content; empty where the hub has it.
	// +optional
	Registry string `json:"registry,omitempty"`
}

// Removal is the mark that lets an agent remove the objects of a deployment.
type Removal struct {
	// Reason says why the deployment goes.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// BundleDeploymentStatus is what the agent last said about a deployment.
type BundleDeploymentStatus struct {
	// Conditions are observations about the deployment.
	// +optional
	// +nullable
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
	// AppliedDeploymentID is the deployment ID that was applied last.
	// +optional
	// +nullable
	AppliedDeploymentID string `json:"appliedDeploymentID,omitempty"`
	// Release is the namespace/name:version of the release.
	// +optional
	// +nullable
	Release string `json:"release,omitempty"`
	// Ready tells whether all objects are ready.
	// +optional
	Ready bool `json:"ready,omitempty"`
	// NonModified tells whether no object was changed on the cluster.
	// +optional
	NonModified bool `json:"nonModified,omitempty"`
	// NonReadyStatus are at most ten objects that are not ready.
	// +optional
	// +nullable
	// +listType=atomic
	NonReadyStatus []NonReadyStatus `json:"nonReadyStatus,omitempty"`
	// ModifiedStatus are at most ten objects that were changed on the cluster.
	// +optional
	// +nullable
	// +listType=atomic
	ModifiedStatus []ModifiedStatus `json:"modifiedStatus,omitempty"`
	// IncompleteState says that the lists above were cut.
	// +optional
	IncompleteState bool `json:"incompleteState,omitempty"`
	// Display is what kubectl shows.
	// +optional
	// +nullable
	Display BundleDeploymentDisplay `json:"display,omitempty,omitzero"`
	// SyncGeneration is the last force-sync generation that was deployed.
	// +optional
	// +nullable
	SyncGeneration *int64 `json:"syncGeneration,omitempty"`
	// Resources are the objects of the deployment that are not ready.
	// +optional
	// +nullable
	// +listType=atomic
	Resources []BundleDeploymentResource `json:"resources,omitempty"`
	// ResourceCounts counts the objects by state.
	// +optional
	ResourceCounts ResourceCounts `json:"resourceCounts,omitempty,omitzero"`
	// DownstreamResourcesGeneration is the generation that was copied last.
	// +optional
	DownstreamResourcesGeneration int64 `json:"downstreamResourcesGeneration,omitempty"`

	// Flotilla: ObservedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Flotilla: InventoryCount is the number of objects that the deployment has
	// on the cluster.
	// +optional
	InventoryCount int `json:"inventoryCount,omitempty"`
	// Flotilla: HeldObjects left the bundle and are kept on the cluster, such
	// as namespaces and volume claims.
	// +optional
	// +listType=atomic
	HeldObjects []ObjectRef `json:"heldObjects,omitempty"`
	// Flotilla: Fetched counts what the agent fetched when it last fetched
	// content.
	// +optional
	// +nullable
	Fetched *FetchedContent `json:"fetched,omitempty"`
	// Flotilla: RemovalState tells how far the removal is.
	// +optional
	// +nullable
	RemovalState *RemovalStatus `json:"removalState,omitempty"`
}

// BundleDeploymentDisplay is what kubectl shows of a deployment.
type BundleDeploymentDisplay struct {
	// Deployed is True, or why it is not.
	// +optional
	// +nullable
	Deployed string `json:"deployed,omitempty"`
	// Monitored is True, or why it is not.
	// +optional
	// +nullable
	Monitored string `json:"monitored,omitempty"`
	// State is the state of the deployment.
	// +optional
	// +nullable
	State string `json:"state,omitempty"`
}

// FetchedContent counts what it took to get a content.
type FetchedContent struct {
	// Bytes were sent to the agent, compressed.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// Payloads were fetched; the others were there already.
	// +optional
	Payloads int `json:"payloads,omitempty"`
	// Reused is the number of those others.
	// +optional
	Reused int `json:"reused,omitempty"`
}

// RemovalStatus tells how far the removal of a deployment is.
type RemovalStatus struct {
	// Done says that nothing is left to remove.
	// +optional
	Done bool `json:"done,omitempty"`
	// Message says what is left and why.
	// +optional
	Message string `json:"message,omitempty"`
}
