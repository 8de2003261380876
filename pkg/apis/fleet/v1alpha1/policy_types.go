package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Policy limits what the GitRepos, HelmOps and Bundles of its namespace may do. All policies of a namespace add up.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=policies,categories=fleet
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
type Policy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// RequireServiceAccount demands a service account.
	// +optional
	RequireServiceAccount bool `json:"requireServiceAccount,omitempty"`
	// AllowedServiceAccounts are the accounts that may be named.
	// +optional
	// +nullable
	// +listType=atomic
	AllowedServiceAccounts []string `json:"allowedServiceAccounts,omitempty"`
	// AllowNamespaceCreation lets the release namespace be created where a service
	// account is demanded.
	// +optional
	AllowNamespaceCreation bool `json:"allowNamespaceCreation,omitempty"`
	// GitRepo limits GitRepos.
	// +optional
	// +nullable
	GitRepo PolicyGitRepo `json:"gitRepo,omitempty,omitzero"`
	// HelmOp limits HelmOps.
	// +optional
	// +nullable
	HelmOp PolicyHelmOp `json:"helmOp,omitempty,omitzero"`
}

// PolicyList is a list of Policy objects.
//
// +kubebuilder:object:root=true
type PolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []Policy `json:"items"`
}

// PolicyGitRepo limits GitRepos.
type PolicyGitRepo struct {
	// DefaultServiceAccount is used where a GitRepo names none.
	// +optional
	// +nullable
	DefaultServiceAccount string `json:"defaultServiceAccount,omitempty"`
	// DefaultClientSecretName is used where a GitRepo names none.
	// +optional
	// +nullable
	DefaultClientSecretName string `json:"defaultClientSecretName,omitempty"`
	// AllowedClientSecretNames are the Secrets that a GitRepo may name.
	// +optional
	// +nullable
	// +listType=atomic
	AllowedClientSecretNames []string `json:"allowedClientSecretNames,omitempty"`
	// AllowedRepoPatterns are regular expressions, one of which must match the
	// whole URL.
	// +optional
	// +nullable
	// +listType=atomic
	AllowedRepoPatterns []string `json:"allowedRepoPatterns,omitempty"`
}

// PolicyHelmOp limits HelmOps.
type PolicyHelmOp struct {
	// DefaultServiceAccount is used where a HelmOp names none.
	// +optional
	// +nullable
	DefaultServiceAccount string `json:"defaultServiceAccount,omitempty"`
	// DefaultHelmSecretName is used where a HelmOp names none.
	// +optional
	// +nullable
	DefaultHelmSecretName string `json:"defaultHelmSecretName,omitempty"`
	// AllowedHelmSecretNames are the Secrets that a HelmOp may name.
	// +optional
	// +nullable
	// +listType=atomic
	AllowedHelmSecretNames []string `json:"allowedHelmSecretNames,omitempty"`
	// AllowedHelmRepoPatterns are regular expressions, one of which must match the
	// whole URL of the repository.
	// +optional
	// +nullable
	// +listType=atomic
	AllowedHelmRepoPatterns []string `json:"allowedHelmRepoPatterns,omitempty"`
	// AllowedChartPatterns are regular expressions, one of which must match the
	// whole chart.
	// +optional
	// +nullable
	// +listType=atomic
	AllowedChartPatterns []string `json:"allowedChartPatterns,omitempty"`
}
