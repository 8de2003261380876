package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TargetCustomizationMode says what happens where several customizations match
// a cluster.
//
// +kubebuilder:validation:Enum=FirstMatch;AllMatches
type TargetCustomizationMode string

const (
	// FirstMatch takes the first customization that matches.
	FirstMatch TargetCustomizationMode = "FirstMatch"
	// AllMatches merges all customizations that match, in order.
	AllMatches TargetCustomizationMode = "AllMatches"
)

// Bundle is a set of resources that is deployed together, with the clusters to
// deploy it to.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=bundles,categories=fleet
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="BundleDeployments-Ready",type=string,JSONPath=`.status.display.readyClusters`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Bundle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	// +optional
	Spec BundleSpec `json:"spec"`
	// Status is what was seen.
	// +optional
	// +structType=atomic
	Status BundleStatus `json:"status,omitempty,omitzero"`
}

// BundleList is a list of Bundles.
//
// +kubebuilder:object:root=true
type BundleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the Bundles.
	Items []Bundle `json:"items"`
}

// BundleSpec is what is wanted of a bundle.
type BundleSpec struct {
	BundleDeploymentOptions `json:",inline"`

	// Paused stages changes and does not roll them out.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// RolloutStrategy says how many clusters may change at the same time.
	// +optional
	// +nullable
	RolloutStrategy *RolloutStrategy `json:"rolloutStrategy,omitempty"`

	// Resources are the files of the bundle.
	// +optional
	// +nullable
	// +listType=atomic
	Resources []BundleResource `json:"resources,omitempty"`

	// TargetCustomizationMode says what happens where several customizations
	// match a cluster.
	// +optional
	// +kubebuilder:default=FirstMatch
	TargetCustomizationMode TargetCustomizationMode `json:"targetCustomizationMode,omitempty"`

	// Targets are the customizations, followed by the targets of the GitRepo.
	// +optional
	// +nullable
	// +listType=atomic
	Targets []BundleTarget `json:"targets,omitempty"`

	// TargetRestrictions are the clusters that the bundle may reach; the
	// controller writes them from the targets of the GitRepo.
	// +optional
	// +nullable
	// +listType=atomic
	TargetRestrictions []BundleTargetRestriction `json:"targetRestrictions,omitempty"`

	// DependsOn are bundles that must be in an accepted state on a cluster
	// before this one is deployed to it.
	// +optional
	// +nullable
	// +listType=atomic
	DependsOn []BundleRef `json:"dependsOn,omitempty"`

	// ContentsID names the content of the bundle where it is stored elsewhere.
	// +optional
	// +nullable
	ContentsID string `json:"contentsId,omitempty"`

	// HelmOpOptions are set on the bundle of a HelmOp.
	// +optional
	// +nullable
	HelmOpOptions *BundleHelmOptions `json:"helmOpOptions,omitempty"`

	// ValuesHash is the digest of the Helm values, which are kept in a Secret.
	// +optional
	// +nullable
	ValuesHash string `json:"valuesHash,omitempty"`

	// Flotilla: Charts are the charts from elsewhere that were packed into the
	// bundle, with the versions that constraints led to; the controller writes
	// them.
	// +optional
	// +listType=atomic
	Charts []BundleChart `json:"charts,omitempty"`

	// Flotilla: OCIRegistrySecret is the name of a Secret in the bundle's
	// namespace with the registry where what is rendered is stored.
	// +optional
	OCIRegistrySecret string `json:"ociRegistrySecret,omitempty"`
}

// BundleChart is a chart from elsewhere that was packed into a bundle.
type BundleChart struct {
	// Repo is the chart repository, as the options or a Chart.yaml name it.
	// +optional
	Repo string `json:"repo,omitempty"`
	// Chart is the name of the chart there, or its URL.
	// +optional
	Chart string `json:"chart,omitempty"`
	// Constraint is the version that was asked for; empty for the newest.
	// +optional
	Constraint string `json:"constraint,omitempty"`
	// Version is the version that was taken.
	// +optional
	Version string `json:"version,omitempty"`
	// Digest is the SHA-256 of the archive, or the commit of a Git repository.
	// +optional
	Digest string `json:"digest,omitempty"`
	// Dir is the directory of the bundle that holds the chart.
	// +optional
	Dir string `json:"dir,omitempty"`
}

// BundleResource is one file of a bundle.
type BundleResource struct {
	// Name is the path of the file, relative to the bundle.
	// +optional
	// +nullable
	Name string `json:"name,omitempty"`
	// Content is the content of the file.
	// +optional
	// +nullable
	Content string `json:"content,omitempty"`
	// Encoding is empty for plain text, or base64+gz.
	// +optional
	// +nullable
	Encoding string `json:"encoding,omitempty"`
}

// BundleRef names bundles by their name or labels.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) || has(self.selector)",message="an entry of dependsOn must specify either name or selector"
type BundleRef struct {
	// Name is the name of a bundle.
	// +optional
	// +nullable
	Name string `json:"name,omitempty"`
	// Selector selects bundles by their labels.
	// +optional
	// +nullable
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// AcceptedStates are the states that are good enough; empty means Ready.
	// +optional
	// +nullable
	// +listType=atomic
	// +kubebuilder:validation:items:Enum=Ready;NotReady;Pending;OutOfSync;Modified;WaitApplied;ErrApplied
	AcceptedStates []BundleState `json:"acceptedStates,omitempty"`
}

// BundleHelmOptions say how an agent gets a chart by itself.
type BundleHelmOptions struct {
	// SecretName is the Secret with the credentials of the chart's server.
	// +optional
	// +nullable
	SecretName string `json:"helmOpSecretName,omitempty"`
	// InsecureSkipTLSverify does not check the server's certificate.
	// +optional
	InsecureSkipTLSverify bool `json:"helmOpInsecureSkipTLSVerify,omitempty"`
	// CABundle are the certificates to check the server's certificate with.
	// +optional
	// +nullable
	CABundle []byte `json:"helmOpCABundle,omitempty"`
}

// BundleStatus is what was seen of a bundle.
type BundleStatus struct {
	// Conditions are observations about the bundle.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
	// Summary counts the deployments by state.
	// +optional
	Summary BundleSummary `json:"summary,omitempty,omitzero"`
	// NewlyCreated is the number of deployments made by the last step.
	// +optional
	NewlyCreated int `json:"newlyCreated,omitempty"`
	// Unavailable is the number of clusters that are not up to date or not ready.
	// +optional
	Unavailable int `json:"unavailable,omitempty"`
	// UnavailablePartitions is the number of partitions that have too many
	// unavailable clusters.
	// +optional
	UnavailablePartitions int `json:"unavailablePartitions,omitempty"`
	// MaxUnavailable is the number of clusters that may be unavailable.
	// +optional
	MaxUnavailable int `json:"maxUnavailable,omitempty"`
	// MaxUnavailablePartitions is the number of partitions that may be
	// unavailable.
	// +optional
	MaxUnavailablePartitions int `json:"maxUnavailablePartitions,omitempty"`
	// MaxNew is the number of deployments that one step may make.
	// +optional
	MaxNew int `json:"maxNew,omitempty"`
	// PartitionStatus is the state of each partition.
	// +optional
	// +listType=atomic
	PartitionStatus []PartitionStatus `json:"partitions,omitempty"`
	// Display is what kubectl shows.
	// +optional
	Display BundleDisplay `json:"display,omitempty,omitzero"`
	// ResourceKey lists the objects of the bundle; it is no longer written.
	// +optional
	// +nullable
	// +listType=atomic
	ResourceKey []ResourceKey `json:"resourceKey,omitempty"`
	// OCIReference is where the content is stored in a registry.
	// +optional
	OCIReference string `json:"ociReference,omitempty"`
	// ObservedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ResourcesSHA256Sum is the digest of the bundle's resources.
	// +optional
	ResourcesSHA256Sum string `json:"resourcesSha256Sum,omitempty"`
	// Flotilla: HeldBack counts clusters with an error of their own, which keep
	// what they run; the Rendered condition names them.
	// +optional
	HeldBack int `json:"heldBack,omitempty"`
}

// BundleDisplay is what kubectl shows of a bundle.
type BundleDisplay struct {
	// ReadyClusters is "ready/wanted" in clusters.
	// +optional
	// +nullable
	ReadyClusters string `json:"readyClusters,omitempty"`
	// State is the worst state of the deployments.
	// +optional
	// +nullable
	State string `json:"state,omitempty"`
}

// ResourceKey names an object by kind, namespace and name.
type ResourceKey struct {
	// Kind is the object's kind.
	// +optional
	// +nullable
	Kind string `json:"kind,omitempty"`
	// APIVersion is the object's API version.
	// +optional
	// +nullable
	APIVersion string `json:"apiVersion,omitempty"`
	// Namespace is the object's namespace.
	// +optional
	// +nullable
	Namespace string `json:"namespace,omitempty"`
	// Name is the object's name.
	// +optional
	// +nullable
	Name string `json:"name,omitempty"`
}
