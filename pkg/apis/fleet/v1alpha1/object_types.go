package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ObjectRef names an object on a cluster.
type ObjectRef struct {
	// APIVersion is the object's API version.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind is the object's kind.
	// +optional
	Kind string `json:"kind,omitempty"`
	// Namespace is the object's namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name is the object's name.
	// +optional
	Name string `json:"name,omitempty"`
}

// BundleDeploymentResource is an object of a deployment.
type BundleDeploymentResource struct {
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
	// CreatedAt is when the object was created.
	// +optional
	// +nullable
	CreatedAt metav1.Time `json:"createdAt,omitempty,omitzero"`
}

// NonReadyStatus is an object that is not ready.
type NonReadyStatus struct {
	// UID is the object's UID.
	// +optional
	// +nullable
	UID types.UID `json:"uid,omitempty"`
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
	// Summary is the object's state.
	// +optional
	Summary Summary `json:"summary,omitempty,omitzero"`
}

// Summary is the state of an object in a few words.
type Summary struct {
	// State is a word for the state.
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
	// +listType=atomic
	Message []string `json:"message,omitempty"`
}

// ModifiedStatus is an object that is not as it was applied.
type ModifiedStatus struct {
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
	// Create says that the object is missing, or, with Exist, not ours.
	// +optional
	Create bool `json:"missing,omitempty"`
	// Exist says that an object of this name is there and is not ours.
	// +optional
	Exist bool `json:"exist,omitempty"`
	// Delete says that the object should not be there.
	// +optional
	Delete bool `json:"delete,omitempty"`
	// Patch is the JSON merge patch from live to wanted.
	// +optional
	// +nullable
	Patch string `json:"patch,omitempty"`
	// Flotilla: Fields are the fields that differ.
	// +optional
	// +listType=atomic
	Fields []FieldDrift `json:"fields,omitempty"`
	// Flotilla: By are the programs that wrote these fields last, where the API
	// server knows.
	// +optional
	// +listType=atomic
	By []FieldOwner `json:"by,omitempty"`
}

// FieldDrift is one field that is not as it was applied.
type FieldDrift struct {
	// Path is the field, such as spec.replicas.
	// +optional
	Path string `json:"path,omitempty"`
	// Desired is the value that was applied, as JSON; secret values are masked.
	// +optional
	Desired string `json:"desired,omitempty"`
	// Live is the value on the cluster, as JSON; secret values are masked.
	// +optional
	Live string `json:"live,omitempty"`
}

// FieldOwner is a program that wrote to an object.
type FieldOwner struct {
	// Manager is the name of the program.
	// +optional
	Manager string `json:"manager,omitempty"`
	// Operation is Apply or Update.
	// +optional
	Operation string `json:"operation,omitempty"`
	// Time is when it wrote.
	// +optional
	// +nullable
	Time *metav1.Time `json:"time,omitempty"`
}
