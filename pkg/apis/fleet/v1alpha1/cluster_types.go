package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cluster is a managed cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusters,categories=fleet
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Bundles-Ready",type=string,JSONPath=`.status.display.readyBundles`
// +kubebuilder:printcolumn:name="Online",type=string,JSONPath=`.status.conditions[?(@.type=="Online")].status`
// +kubebuilder:printcolumn:name="Last-Seen",type=string,JSONPath=`.status.agent.lastSeen`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	// +optional
	Spec ClusterSpec `json:"spec,omitempty,omitzero"`
	// Status is what was seen.
	// +optional
	// +structType=atomic
	Status ClusterStatus `json:"status,omitempty,omitzero"`
}

// ClusterList is a list of Cluster objects.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []Cluster `json:"items"`
}

// ClusterSpec is what is wanted of a cluster.
type ClusterSpec struct {
	// Paused stages changes and deploys none to this cluster.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// ClientID is what the agent of this cluster registers with.
	// +optional
	// +nullable
	ClientID string `json:"clientID,omitempty"`
	// KubeConfigSecret is the Secret with the kubeconfig of the cluster, for the
	// hub to import it.
	// +optional
	// +nullable
	KubeConfigSecret string `json:"kubeConfigSecret,omitempty"`
	// KubeConfigSecretNamespace is the namespace of that Secret; empty means the
	// cluster's own.
	// +optional
	// +nullable
	KubeConfigSecretNamespace string `json:"kubeConfigSecretNamespace,omitempty"`
	// RedeployAgentGeneration deploys the agent again when it is raised.
	// +optional
	RedeployAgentGeneration int64 `json:"redeployAgentGeneration,omitempty"`
	// AgentEnvVars are environment variables of the agent.
	// +optional
	// +nullable
	// +listType=atomic
	AgentEnvVars []EnvVar `json:"agentEnvVars,omitempty"`
	// AgentNamespace is the namespace of the agent.
	// +optional
	// +nullable
	AgentNamespace string `json:"agentNamespace,omitempty"`
	// PrivateRepoURL is put before the name of the agent's image.
	// +optional
	// +nullable
	PrivateRepoURL string `json:"privateRepoURL,omitempty"`
	// TemplateValues are the .ClusterValues of templates in Helm values.
	// +optional
	// +nullable
	TemplateValues *GenericMap `json:"templateValues,omitempty"`
	// AgentTolerations are tolerations of the agent.
	// +optional
	// +nullable
	// +listType=atomic
	AgentTolerations []Toleration `json:"agentTolerations,omitempty"`
	// AgentAffinity is the affinity of the agent, as in a pod.
	// +optional
	// +nullable
	AgentAffinity *GenericMap `json:"agentAffinity,omitempty"`
	// AgentResources are the resource requirements of the agent, as in a
	// container.
	// +optional
	// +nullable
	AgentResources *GenericMap `json:"agentResources,omitempty"`
	// HostNetwork runs the agent in the node's network.
	// +optional
	// +nullable
	HostNetwork *bool `json:"hostNetwork,omitempty"`
	// AgentPullSecrets are the Secrets to pull the agent's image with.
	// +optional
	// +nullable
	// +listType=atomic
	AgentPullSecrets []LocalObjectReference `json:"agentPullSecrets,omitempty"`
	// AgentSchedulingCustomization says how the agent is scheduled.
	// +optional
	// +nullable
	AgentSchedulingCustomization *AgentSchedulingCustomization `json:"agentSchedulingCustomization,omitempty"`
}

// ClusterStatus is what was seen of a cluster.
type ClusterStatus struct {
	// Conditions are observations about the object.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
	// Namespace is the namespace of the cluster's deployments on the hub.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Summary counts the deployments by state.
	// +optional
	Summary BundleSummary `json:"summary,omitempty,omitzero"`
	// ResourceCounts counts the objects by state.
	// +optional
	ResourceCounts ResourceCounts `json:"resourceCounts,omitempty,omitzero"`
	// ReadyGitRepos is the number of GitRepos that are ready here.
	// +optional
	ReadyGitRepos int `json:"readyGitRepos,omitempty"`
	// DesiredReadyGitRepos is the number of GitRepos that should be ready here.
	// +optional
	DesiredReadyGitRepos int `json:"desiredReadyGitRepos,omitempty"`
	// ReadyHelmOps is the number of HelmOps that are ready here.
	// +optional
	ReadyHelmOps int `json:"readyHelmOps,omitempty"`
	// DesiredReadyHelmOps is the number of HelmOps that should be ready here.
	// +optional
	DesiredReadyHelmOps int `json:"desiredReadyHelmOps,omitempty"`
	// AgentEnvVarsHash is the digest of the environment that the agent was
	// deployed with.
	// +optional
	// +nullable
	AgentEnvVarsHash string `json:"agentEnvVarsHash,omitempty"`
	// AgentPrivateRepoURL is the private registry that the agent was deployed
	// with.
	// +optional
	// +nullable
	AgentPrivateRepoURL string `json:"agentPrivateRepoURL,omitempty"`
	// AgentHostNetwork tells whether the agent was deployed to the node's network.
	// +optional
	// +nullable
	AgentHostNetwork bool `json:"agentHostNetwork,omitempty"`
	// AgentDeployedGeneration is the generation that the agent was deployed with.
	// +optional
	// +nullable
	AgentDeployedGeneration *int64 `json:"agentDeployedGeneration,omitempty"`
	// AgentMigrated is kept for compatibility.
	// +optional
	AgentMigrated bool `json:"agentMigrated,omitempty"`
	// AgentNamespaceMigrated is kept for compatibility.
	// +optional
	AgentNamespaceMigrated bool `json:"agentNamespaceMigrated,omitempty"`
	// CattleNamespaceMigrated is kept for compatibility.
	// +optional
	CattleNamespaceMigrated bool `json:"cattleNamespaceMigrated,omitempty"`
	// AgentAffinityHash is the digest of the affinity that the agent was deployed
	// with.
	// +optional
	AgentAffinityHash string `json:"agentAffinityHash,omitempty"`
	// AgentResourcesHash is the digest of the resources that the agent was
	// deployed with.
	// +optional
	// +nullable
	AgentResourcesHash string `json:"agentResourcesHash,omitempty"`
	// AgentTolerationsHash is the digest of the tolerations that the agent was
	// deployed with.
	// +optional
	// +nullable
	AgentTolerationsHash string `json:"agentTolerationsHash,omitempty"`
	// AgentSchedulingCustomizationHash is the digest of the scheduling that the
	// agent was deployed with.
	// +optional
	AgentSchedulingCustomizationHash string `json:"agentSchedulingCustomizationHash,omitempty"`
	// AgentConfigChanged says that the agent has to be deployed again.
	// +optional
	AgentConfigChanged bool `json:"agentConfigChanged,omitempty"`
	// APIServerURL is the hub's URL that the agent was deployed with.
	// +optional
	// +nullable
	APIServerURL string `json:"apiServerURL,omitempty"`
	// APIServerCAHash is the digest of the hub's certificates that the agent was
	// deployed with.
	// +optional
	// +nullable
	APIServerCAHash string `json:"apiServerCAHash,omitempty"`
	// AgentTLSMode is the TLS mode that the agent was deployed with: system-store
	// or strict.
	// +optional
	// +nullable
	AgentTLSMode string `json:"agentTLSMode,omitempty"`
	// GarbageCollectionInterval is the interval that the agent was deployed with.
	// +optional
	// +nullable
	GarbageCollectionInterval *metav1.Duration `json:"garbageCollectionInterval,omitempty"`
	// Display is what kubectl shows.
	// +optional
	Display ClusterDisplay `json:"display,omitempty,omitzero"`
	// Agent is what is known of the agent.
	// +optional
	Agent AgentStatus `json:"agent,omitempty,omitzero"`
	// Scheduled says that a schedule targets the cluster.
	// +optional
	Scheduled bool `json:"scheduled,omitempty"`
	// ActiveSchedule says that a schedule of the cluster is open.
	// +optional
	ActiveSchedule bool `json:"activeSchedule,omitempty"`
	// Flotilla: UnknownDeployments is the number of deployments on the cluster
	// that the hub does not know; they are kept.
	// +optional
	UnknownDeployments int `json:"unknownDeployments,omitempty"`
}

// ClusterDisplay is what kubectl shows of a cluster.
type ClusterDisplay struct {
	// ReadyBundles is "ready/wanted" in bundles.
	// +optional
	ReadyBundles string `json:"readyBundles,omitempty"`
	// State is the worst state of the deployments.
	// +optional
	// +nullable
	State string `json:"state,omitempty"`
}

// AgentStatus is what is known of the agent of a cluster.
type AgentStatus struct {
	// LastSeen is when the agent last reported; it is written when the state
	// changes and from time to time.
	// +optional
	// +nullable
	LastSeen metav1.Time `json:"lastSeen,omitempty,omitzero"`
	// Namespace is the namespace of the agent.
	// +optional
	// +nullable
	Namespace string `json:"namespace,omitempty"`
	// Flotilla: KubernetesVersion is the version of the cluster.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
}
