package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Content is kept for compatibility: the kind is known, and nothing reads or writes it. Payloads are in ConfigMaps.
// It is in no category, so that listing all kinds does not fetch payloads.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=contents,scope=Cluster
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
type Content struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Content is the compressed payload.
	// +optional
	// +nullable
	Content []byte `json:"content,omitempty"`
	// SHA256Sum is the digest of the payload.
	// +optional
	SHA256Sum string `json:"sha256sum,omitempty"`
	// Status is what was seen.
	// +optional
	Status ContentStatus `json:"status,omitempty,omitzero"`
}

// ContentList is a list of Content objects.
//
// +kubebuilder:object:root=true
type ContentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []Content `json:"items"`
}

// ContentStatus is kept for compatibility.
type ContentStatus struct {
	// ReferenceCount is kept for compatibility; what nothing refers to is found by
	// a sweep.
	// +optional
	ReferenceCount int `json:"referenceCount,omitempty"`
}
