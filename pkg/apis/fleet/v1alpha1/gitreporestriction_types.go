package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GitRepoRestriction limits what the GitRepos of its namespace may do. All restrictions of a namespace add up.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=gitreporestrictions,categories=fleet
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Default-ServiceAccount",type=string,JSONPath=`.defaultServiceAccount`
// +kubebuilder:printcolumn:name="Allowed-ServiceAccounts",type=string,JSONPath=`.allowedServiceAccounts`
type GitRepoRestriction struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// DefaultServiceAccount is used where a GitRepo names none.
	// +optional
	// +nullable
	DefaultServiceAccount string `json:"defaultServiceAccount,omitempty"`
	// AllowedServiceAccounts are the accounts that a GitRepo may name.
	// +optional
	// +nullable
	// +listType=atomic
	AllowedServiceAccounts []string `json:"allowedServiceAccounts,omitempty"`
	// AllowedRepoPatterns are regular expressions, one of which the URL must
	// match.
	// +optional
	// +nullable
	// +listType=atomic
	AllowedRepoPatterns []string `json:"allowedRepoPatterns,omitempty"`
	// DefaultClientSecretName is used where a GitRepo names none.
	// +optional
	// +nullable
	DefaultClientSecretName string `json:"defaultClientSecretName,omitempty"`
	// AllowedClientSecretNames are the Secrets that a GitRepo may name.
	// +optional
	// +nullable
	// +listType=atomic
	AllowedClientSecretNames []string `json:"allowedClientSecretNames,omitempty"`
	// AllowedTargetNamespaces are the namespaces that a GitRepo may deploy to; it
	// must then name one.
	// +optional
	// +nullable
	// +listType=atomic
	AllowedTargetNamespaces []string `json:"allowedTargetNamespaces,omitempty"`
	// AllowedTargetNamespaceSelector selects further namespaces by their labels on
	// the cluster.
	// +optional
	// +nullable
	AllowedTargetNamespaceSelector *metav1.LabelSelector `json:"allowedTargetNamespaceSelector,omitempty"`
	// Status is what was seen.
	// +optional
	Status ConditionedStatus `json:"status,omitempty,omitzero"`
}

// GitRepoRestrictionList is a list of GitRepoRestriction objects.
//
// +kubebuilder:object:root=true
type GitRepoRestrictionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []GitRepoRestriction `json:"items"`
}
