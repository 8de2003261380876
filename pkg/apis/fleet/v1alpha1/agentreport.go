package v1alpha1

// AgentReportAnnotation is where an agent's Lease on the hub says what the
// agent tells of itself: an AgentReport, as JSON.
const AgentReportAnnotation = "flotilla.sh/agent"

// AgentReportMost is how many bytes of it are read; more are refused.
const AgentReportMost = 1024

// AgentReport is what an agent tells of itself. The hub puts it into the status
// of the Cluster, which agents cannot write.
//
// +kubebuilder:object:generate=false
type AgentReport struct {
	// Namespace is the namespace of the agent on its cluster.
	Namespace string `json:"namespace,omitempty"`
	// KubernetesVersion is the version of the cluster.
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// UnknownDeployments is the number of deployments on the cluster that the
	// hub does not know.
	UnknownDeployments int `json:"unknownDeployments,omitempty"`
}
