package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterRegistration is the wish of an agent to be registered.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusterregistrations,categories=fleet
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Cluster-Name",type=string,JSONPath=`.status.clusterName`
// +kubebuilder:printcolumn:name="Labels",type=string,JSONPath=`.spec.clusterLabels`
type ClusterRegistration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	// +optional
	Spec ClusterRegistrationSpec `json:"spec,omitempty,omitzero"`
	// Status is what was seen.
	// +optional
	Status ClusterRegistrationStatus `json:"status,omitempty,omitzero"`
}

// ClusterRegistrationList is a list of ClusterRegistration objects.
//
// +kubebuilder:object:root=true
type ClusterRegistrationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []ClusterRegistration `json:"items"`
}

// ClusterRegistrationSpec is what an agent says of its cluster.
type ClusterRegistrationSpec struct {
	// ClientID names the cluster.
	// +optional
	// +nullable
	ClientID string `json:"clientID,omitempty"`
	// ClientRandom is a random text that makes this registration different from
	// others.
	// +optional
	// +nullable
	ClientRandom string `json:"clientRandom,omitempty"`
	// ClusterLabels are labels for the Cluster.
	// +optional
	// +nullable
	ClusterLabels map[string]string `json:"clusterLabels,omitempty"`
}

// ClusterRegistrationStatus is the answer to a registration.
type ClusterRegistrationStatus struct {
	// ClusterName is the Cluster that the agent stands for.
	// +optional
	// +nullable
	ClusterName string `json:"clusterName,omitempty"`
	// Granted says that the agent has got its credentials.
	// +optional
	Granted bool `json:"granted,omitempty"`
	// Flotilla: Conditions are observations about the object.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
}

// ClusterRegistrationToken lets clusters register in its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusterregistrationtokens,categories=fleet
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Secret-Name",type=string,JSONPath=`.status.secretName`
type ClusterRegistrationToken struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	// +optional
	Spec ClusterRegistrationTokenSpec `json:"spec,omitempty,omitzero"`
	// Status is what was seen.
	// +optional
	Status ClusterRegistrationTokenStatus `json:"status,omitempty,omitzero"`
}

// ClusterRegistrationTokenList is a list of ClusterRegistrationToken objects.
//
// +kubebuilder:object:root=true
type ClusterRegistrationTokenList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []ClusterRegistrationToken `json:"items"`
}

// ClusterRegistrationTokenSpec is what is wanted of a token.
type ClusterRegistrationTokenSpec struct {
	// TTL is how long the token lives; unset and 0 mean for ever.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == '0' || (self.matches('^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('2562047h'))",message="must be a duration with the units ns, us, µs, ms, s, m and h, such as 15s, 5m or 1h30m, of at most 2562047h; days (d) and weeks (w) are not known: write 24h or 168h"
	TTL *metav1.Duration `json:"ttl,omitempty"`
}

// ClusterRegistrationTokenStatus is what was seen of a token.
type ClusterRegistrationTokenStatus struct {
	// Expires is when the token expires.
	// +optional
	// +nullable
	Expires *metav1.Time `json:"expires,omitempty"`
	// SecretName is the Secret with the values for the agent.
	// +optional
	// +nullable
	SecretName string `json:"secretName,omitempty"`
	// Flotilla: Conditions are observations about the object.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
}
