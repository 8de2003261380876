package v1alpha1

// Labels of the hub's objects.
const (
	// RepoLabel names the GitRepo that an object comes from.
	RepoLabel = "fleet.cattle.io/repo-name"
	// CommitLabel is the commit that an object comes from.
	CommitLabel = "fleet.cattle.io/commit"
	// BundleLabel names the bundle of a deployment.
	BundleLabel = "fleet.cattle.io/bundle-name"
	// BundleNamespaceLabel is the namespace of a deployment's bundle.
	BundleNamespaceLabel = "fleet.cattle.io/bundle-namespace"
	// ClusterLabel names the cluster of an object.
	ClusterLabel = "fleet.cattle.io/cluster"
	// ClusterNamespaceLabel is the namespace of an object's cluster.
	ClusterNamespaceLabel = "fleet.cattle.io/cluster-namespace"
	// ManagedLabel marks what a controller made.
	ManagedLabel = "fleet.cattle.io/managed"
	// HelmOpLabel names the HelmOp that a bundle comes from.
	HelmOpLabel = "fleet.cattle.io/fleet-helm-name"
	// CreatedByUserIDLabel names the user that created an object.
	CreatedByUserIDLabel = "fleet.cattle.io/created-by-user-id"
	// ContentNameLabel names the Content of a deployment.
	ContentNameLabel = "fleet.cattle.io/content-name"
	// BundleDeploymentLabel names the deployment that an object belongs to.
	BundleDeploymentLabel = "fleet.cattle.io/bundledeployment"
	// InternalSecretLabel marks Secrets that a controller made for a bundle.
	InternalSecretLabel = "fleet.cattle.io/bundle-internal-secret"
	// ShardRefLabel names the shard that reconciles an object.
	ShardRefLabel = "fleet.cattle.io/shard-ref"
	// ShardIDLabel is the shard of a controller.
	ShardIDLabel = "fleet.cattle.io/shard-id"
	// ShardDefaultLabel marks the controller of objects without a shard.
	ShardDefaultLabel = "fleet.cattle.io/shard-default"
	// RegistrationTokenLabel names the token that an object belongs to.
	RegistrationTokenLabel = "fleet.cattle.io/registration-token"
	// ClusterManagementLabel hands the import of a cluster to someone else.
	ClusterManagementLabel = "fleet.cattle.io/cluster-management"
	// NonManagedAgentLabel marks clusters whose agent is managed by hand.
	NonManagedAgentLabel = "fleet.cattle.io/non-managed-agent"
	// CreatedByAgentPodLabel names the agent that asked for a registration.
	CreatedByAgentPodLabel = "fleet.cattle.io/created-by-agent-pod"
	// ClusterDisplayNameLabel is another name of a cluster; clusterName matches
	// it too.
	ClusterDisplayNameLabel = "management.cattle.io/cluster-display-name"
)

// Labels and annotations of the objects on a cluster.
const (
	// DeploymentLabel is on every object that an agent applies. Its value is
	// the digest of the bundle's namespace and name.
	DeploymentLabel = "flotilla.sh/deployment"
	// WaveAnnotation orders the objects of a bundle: those of one number are
	// ready before those of the next are applied; without it, it is 0.
	WaveAnnotation = "flotilla.sh/wave"
	// CopiedAnnotation is the namespace/name of the object on the hub of which
	// an object is a copy; such objects are applied before hooks and waves.
	CopiedAnnotation = "flotilla.sh/copied-from"
	// BundleAnnotation is the namespace/name of the bundle of an object.
	BundleAnnotation = "flotilla.sh/bundle"
	// HubAnnotation is the identity of the hub that an object's bundle is on;
	// on an agent's Lease, of the hub that the agent serves.
	HubAnnotation = "flotilla.sh/hub"
	// ObjectSetHashLabel is Rancher Fleet's label of the objects of a bundle.
	ObjectSetHashLabel = "objectset.rio.cattle.io/hash"
	// ObjectSetIDAnnotation is Rancher Fleet's name of an object's bundle.
	ObjectSetIDAnnotation = "objectset.rio.cattle.io/id"
	// PruneLabel with the value false keeps an object that leaves its bundle.
	PruneLabel = "objectset.rio.cattle.io/prune"
	// BundleIDAnnotation names the bundle of a Helm release.
	BundleIDAnnotation = "fleet.cattle.io/bundle-id"
	// AgentNamespaceAnnotation is the namespace of a release's agent.
	AgentNamespaceAnnotation = "fleet.cattle.io/agent-namespace"
	// ServiceAccountAnnotation is the account that a release was made with.
	ServiceAccountAnnotation = "fleet.cattle.io/service-account"
	// KeepResourcesAnnotation says that a release's objects outlive it.
	KeepResourcesAnnotation = "fleet.cattle.io/keep-resources"
	// CommitAnnotation is the commit of a release.
	CommitAnnotation = "fleet.cattle.io/commit"
)
