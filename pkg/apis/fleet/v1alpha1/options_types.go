package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RenderMode says where a bundle is rendered.
//
// +kubebuilder:validation:Enum=auto;hub;agent
type RenderMode string

const (
	// RenderAuto renders on the hub, and on the agent only where the result
	// needs the agent's cluster.
	RenderAuto RenderMode = "auto"
	// RenderHub renders on the hub always; a bundle that needs its cluster stalls.
	RenderHub RenderMode = "hub"
	// RenderAgent renders on the agent always.
	RenderAgent RenderMode = "agent"
)

// BundleDeploymentOptions say how the objects of a bundle are made and applied.
// They stand at the root of a bundle, in each of its targets and in each
// deployment.
type BundleDeploymentOptions struct {
	// DefaultNamespace is the namespace of namespaced objects that name none;
	// empty means "default".
	// +optional
	// +nullable
	DefaultNamespace string `json:"defaultNamespace,omitempty"`

	// TargetNamespace forces all objects into this namespace. A bundle with a
	// cluster-scoped object then fails to deploy.
	// +optional
	// +nullable
	TargetNamespace string `json:"namespace,omitempty"`

	// Kustomize are the options for a Kustomize layout.
	// +optional
	// +nullable
	Kustomize *KustomizeOptions `json:"kustomize,omitempty"`

	// Helm are the options for a Helm chart.
	// +optional
	// +nullable
	Helm *HelmOptions `json:"helm,omitempty"`

	// ServiceAccount is the account in the agent's namespace that the agent
	// acts as; empty means fleet-default where it exists, else the agent's own.
	// +optional
	// +nullable
	ServiceAccount string `json:"serviceAccount,omitempty"`

	// CreateNamespace creates the namespace of the release where it is missing;
	// unset means true.
	// +optional
	// +nullable
	CreateNamespace *bool `json:"createNamespace,omitempty"`

	// ForceSyncGeneration deploys again, even equal content, when it is raised.
	// +optional
	ForceSyncGeneration int64 `json:"forceSyncGeneration,omitempty"`

	// YAML are the options for a layout of plain YAML files.
	// +optional
	// +nullable
	YAML *YAMLOptions `json:"yaml,omitempty"`

	// Diff says which differences between wanted and live are no drift.
	// +optional
	// +nullable
	Diff *DiffOptions `json:"diff,omitempty"`

	// KeepResources leaves the objects on the cluster when the deployment goes.
	// +optional
	KeepResources bool `json:"keepResources,omitempty"`

	// DeleteNamespace deletes the target namespace together with the bundle.
	// +optional
	DeleteNamespace bool `json:"deleteNamespace,omitempty"`

	// IgnoreOptions says what does not count for readiness.
	// +optional
	// +nullable
	IgnoreOptions IgnoreOptions `json:"ignore,omitzero"`

	// CorrectDrift puts objects back that were changed on the cluster.
	// +optional
	// +nullable
	CorrectDrift *CorrectDrift `json:"correctDrift,omitempty"`

	// NamespaceLabels are the labels of the release namespace.
	// +optional
	// +nullable
	NamespaceLabels map[string]string `json:"namespaceLabels,omitempty"`

	// NamespaceAnnotations are the annotations of the release namespace.
	// +optional
	// +nullable
	NamespaceAnnotations map[string]string `json:"namespaceAnnotations,omitempty"`

	// DeleteCRDResources lets custom resource definitions go together with the
	// bundle; otherwise they, and the objects of their kinds, are kept.
	// +optional
	DeleteCRDResources bool `json:"deleteCRDResources,omitempty"`

	// DownstreamResources are Secrets and ConfigMaps that are copied from the
	// bundle's namespace to the release namespace before the deployment.
	// +optional
	// +nullable
	// +listType=atomic
	DownstreamResources []DownstreamResource `json:"downstreamResources,omitempty"`

	// Overwrites are objects that this bundle takes over from another one.
	// The controller writes it.
	// +optional
	// +nullable
	// +listType=atomic
	Overwrites []OverwrittenResource `json:"overwrites,omitempty"`

	// AllowedTargetNamespaceSelector must match the labels of the target
	// namespace on the cluster. The controller writes it.
	// +optional
	// +nullable
	AllowedTargetNamespaceSelector *metav1.LabelSelector `json:"allowedTargetNamespaceSelector,omitempty"`

	// Flotilla: TemplateManifests fills in ${ } in plain YAML and in what
	// Kustomize builds, with what templates in helm.values know of the cluster.
	// +optional
	TemplateManifests bool `json:"templateManifests,omitempty"`

	// Flotilla: Render says where the bundle is rendered; unset means auto.
	// +optional
	Render RenderMode `json:"render,omitempty"`
}

// KustomizeOptions are the options for a Kustomize layout.
type KustomizeOptions struct {
	// Dir is the directory, relative to the bundle, that holds the
	// kustomization; empty means the bundle's own directory.
	// +optional
	// +nullable
	Dir string `json:"dir,omitempty"`
}

// YAMLOptions are the options for a layout of plain YAML files.
type YAMLOptions struct {
	// Overlays are the names of directories below overlays/ that replace or
	// patch files of the bundle, in this order.
	// +optional
	// +nullable
	// +listType=atomic
	Overlays []string `json:"overlays,omitempty"`
}

// IgnoreOptions say what does not count for readiness.
type IgnoreOptions struct {
	// Conditions are left out of account: each entry takes away the status
	// conditions that have all of its keys with these values.
	// +optional
	// +nullable
	// +listType=atomic
	Conditions []map[string]string `json:"conditions,omitempty"`
}

// CorrectDrift says whether and how drift is put right.
type CorrectDrift struct {
	// Enabled puts drift right.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// Force replaces objects that cannot be changed in place.
	// +optional
	Force bool `json:"force,omitempty"`
	// KeepFailHistory keeps the record of corrections that failed.
	// +optional
	KeepFailHistory bool `json:"keepFailHistory,omitempty"`
}

// DownstreamResource names an object that is copied to the cluster.
type DownstreamResource struct {
	// Kind is Secret or ConfigMap.
	// +optional
	// +kubebuilder:validation:Enum=Secret;ConfigMap;secret;configmap
	Kind string `json:"kind,omitempty"`
	// Name is the object's name in the bundle's namespace.
	// +optional
	Name string `json:"name,omitempty"`
}

// OverwrittenResource names an object that moved here from another bundle.
type OverwrittenResource struct {
	// Kind is the object's kind.
	// +optional
	Kind string `json:"kind,omitempty"`
	// Name is the object's name.
	// +optional
	Name string `json:"name,omitempty"`
	// Namespace is the object's namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}
