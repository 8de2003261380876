package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HelmOp deploys a Helm chart without a Git repository.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=helmops,categories=fleet
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Repo",type=string,JSONPath=`.spec.helm.repo`
// +kubebuilder:printcolumn:name="Chart",type=string,JSONPath=`.spec.helm.chart`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="BundleDeployments-Ready",type=string,JSONPath=`.status.display.readyBundleDeployments`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type HelmOp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	// +optional
	Spec HelmOpSpec `json:"spec,omitempty,omitzero"`
	// Status is what was seen.
	// +optional
	Status HelmOpStatus `json:"status,omitempty,omitzero"`
}

// HelmOpList is a list of HelmOp objects.
//
// +kubebuilder:object:root=true
type HelmOpList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []HelmOp `json:"items"`
}

// HelmOpSpec is what is wanted of a chart.
type HelmOpSpec struct {
	BundleSpec `json:",inline"`
	// Labels are copied to the bundle.
	// +optional
	// +nullable
	Labels map[string]string `json:"labels,omitempty"`
	// PollingInterval is how often newer versions are looked for, where the
	// version is a constraint; unset and 0 mean never.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == '0' || (self.matches('^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('2562047h'))",message="must be a duration with the units ns, us, µs, ms, s, m and h, such as 15s, 5m or 1h30m, of at most 2562047h; days (d) and weeks (w) are not known: write 24h or 168h"
	PollingInterval *metav1.Duration `json:"pollingInterval,omitempty"`
	// HelmSecretName is the Secret with the credentials of the Helm repository.
	// +optional
	// +nullable
	HelmSecretName string `json:"helmSecretName,omitempty"`
	// InsecureSkipTLSverify does not check the certificate of the Helm repository.
	// +optional
	InsecureSkipTLSverify bool `json:"insecureSkipTLSVerify,omitempty"`
}

// HelmOpStatus is what was seen of a chart.
type HelmOpStatus struct {
	StatusBase `json:",inline"`
	// LastPollingTime is when the last poll began.
	// +optional
	// +nullable
	LastPollingTime metav1.Time `json:"lastPollingTriggered,omitempty,omitzero"`
	// Version is the version that the constraint led to.
	// +optional
	Version string `json:"version,omitempty"`
}
