package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ImageScan looks for the newest tag of an image, to be written to Git.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=imagescans,categories=fleet
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Repository",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Latest",type=string,JSONPath=`.status.latestTag`
type ImageScan struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	// +optional
	Spec ImageScanSpec `json:"spec,omitempty,omitzero"`
	// Status is what was seen.
	// +optional
	Status ImageScanStatus `json:"status,omitempty,omitzero"`
}

// ImageScanList is a list of ImageScan objects.
//
// +kubebuilder:object:root=true
type ImageScanList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []ImageScan `json:"items"`
}

// ImageScanSpec is what is wanted of a scan.
type ImageScanSpec struct {
	// TagName is the name that the markers in the files refer to.
	// +optional
	// +nullable
	TagName string `json:"tagName,omitempty"`
	// GitRepoName is the GitRepo that the tag is written to.
	// +optional
	// +nullable
	GitRepoName string `json:"gitrepoName,omitempty"`
	// Image is the image, without a tag.
	// +nullable
	Image string `json:"image"`
	// Interval is how often the registry is asked.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == '0' || (self.matches('^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('2562047h'))",message="must be a duration with the units ns, us, µs, ms, s, m and h, such as 15s, 5m or 1h30m, of at most 2562047h; days (d) and weeks (w) are not known: write 24h or 168h"
	// +kubebuilder:default="15m"
	Interval *metav1.Duration `json:"interval,omitempty"`
	// SecretRef is the Secret, of the type dockerconfigjson, with the credentials
	// of the registry.
	// +optional
	// +nullable
	SecretRef *LocalObjectReference `json:"secretRef,omitempty"`
	// Suspend stops the scan.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// Policy says which tag is the newest.
	// +optional
	// +nullable
	Policy ImagePolicyChoice `json:"policy,omitempty,omitzero"`
}

// ImagePolicyChoice says which tag is the newest.
type ImagePolicyChoice struct {
	// SemVer takes the highest version.
	// +optional
	// +nullable
	SemVer *SemVerPolicy `json:"semver,omitempty"`
	// Alphabetical takes the first or last in alphabetical order.
	// +optional
	// +nullable
	Alphabetical *AlphabeticalPolicy `json:"alphabetical,omitempty"`
}

// SemVerPolicy takes the highest version in a range.
type SemVerPolicy struct {
	// Range is a semantic version constraint.
	// +optional
	// +nullable
	Range string `json:"range,omitempty"`
}

// AlphabeticalPolicy takes the first or last tag in alphabetical order.
type AlphabeticalPolicy struct {
	// Order is asc or desc.
	// +optional
	// +nullable
	Order string `json:"order,omitempty"`
}

// ImageScanStatus is what was seen of an image.
type ImageScanStatus struct {
	// Conditions are observations about the object.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
	// LastScanTime is when the registry was asked last.
	// +optional
	// +nullable
	LastScanTime metav1.Time `json:"lastScanTime,omitempty,omitzero"`
	// LatestImage is the image with the newest tag.
	// +optional
	LatestImage string `json:"latestImage,omitempty"`
	// LatestTag is the newest tag.
	// +optional
	LatestTag string `json:"latestTag,omitempty"`
	// LatestDigest is the digest of the newest tag.
	// +optional
	LatestDigest string `json:"latestDigest,omitempty"`
	// CanonicalImageName is the full name of the image.
	// +optional
	CanonicalImageName string `json:"canonicalImageName,omitempty"`
	// ObservedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}
