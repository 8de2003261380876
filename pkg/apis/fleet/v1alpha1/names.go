package v1alpha1

// Names that the hub, the agents and their charts agree on.
const (
	// AgentName names an agent's ServiceAccount and Lease on the hub.
	AgentName = "flotilla-agent"
	// AgentContentRole is the Role to read content by name.
	AgentContentRole = "flotilla-agent-content"
	// CapabilitiesName is the ConfigMap in a cluster's namespace in which its
	// agent reports what the cluster serves.
	CapabilitiesName = "flotilla-capabilities"
	// CapabilitiesVersionKey is that ConfigMap's key for the server's version.
	CapabilitiesVersionKey = "kubeVersion"
	// CapabilitiesAPIsKey is its key for the kinds, one a line:
	// "group/version/Kind N" for namespaced ones, C for cluster scope.
	CapabilitiesAPIsKey = "apis"
)

// Namespaces with a meaning of their own.
const (
	// SystemNamespace is where the hub and the agents run.
	SystemNamespace = "cattle-fleet-system"
	// RegistrationNamespace holds the secrets of registrations.
	RegistrationNamespace = "cattle-fleet-clusters-system"
	// ContentNamespace holds what the hub rendered, as ConfigMaps.
	ContentNamespace = "flotilla-content"
	// LocalNamespace holds the hub's own cluster.
	LocalNamespace = "fleet-local"
	// DefaultNamespace holds the other clusters unless told otherwise.
	DefaultNamespace = "fleet-default"
)

// Types of Secrets.
const (
	// BundleValuesType holds the Helm values of a bundle.
	BundleValuesType = "fleet.cattle.io/bundle-values/v1alpha1"
	// BundleDeploymentValuesType holds the Helm values of a deployment.
	BundleDeploymentValuesType = "fleet.cattle.io/bundle-deployment/v1alpha1"
	// OCIStorageType holds the access to a registry for contents.
	OCIStorageType = "fleet.cattle.io/bundle-oci-storage/v1alpha1"
	// HelmOpsAccessType holds the access to a chart for agents.
	HelmOpsAccessType = "fleet.cattle.io/bundle-helmops-access/v1alpha1"
)

// Names of Secrets and ConfigMaps that are used where a spec names none.
const (
	// GitCredentialSecret holds the credentials of a GitRepo.
	GitCredentialSecret = "gitcredential"
	// OCIStorageSecret holds the access to a registry for contents.
	OCIStorageSecret = "ocistorage"
	// WebhookSecret holds the secrets of webhooks.
	WebhookSecret = "gitjob-webhook"
	// KnownHostsConfigMap holds the host keys of Git servers.
	KnownHostsConfigMap = "known-hosts"
)
