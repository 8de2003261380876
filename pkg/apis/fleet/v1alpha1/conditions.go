package v1alpha1

// Types of conditions.
const (
	// ConditionReady is True where everything is as wanted. Its message is what
	// kubectl shows as Status.
	ConditionReady = "Ready"
	// ConditionAccepted is False where a restriction, a policy, a missing
	// secret or the spec itself keeps an object from being acted on.
	ConditionAccepted = "Accepted"
	// ConditionGitPolling is False where the Git server could not be asked.
	ConditionGitPolling = "GitPolling"
	// ConditionReconciling is True while a new commit is worked on.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True where a human must act.
	ConditionStalled = "Stalled"
	// ConditionImageSynced tells about writing image tags to Git.
	ConditionImageSynced = "ImageSynced"
	// ConditionImageScanned tells about looking for image tags.
	ConditionImageScanned = "ImageScanned"
	// ConditionPolled tells about looking for chart versions.
	ConditionPolled = "Polled"
	// ConditionInstalled is True where the objects of a deployment were applied.
	ConditionInstalled = "Installed"
	// ConditionDeployed is False where a deployment failed and is tried again.
	ConditionDeployed = "Deployed"
	// ConditionMonitored is True where the agent watches the objects.
	ConditionMonitored = "Monitored"
	// ConditionProcessed tells about the roll-up of a cluster or cluster group.
	ConditionProcessed = "Processed"
	// ConditionImported tells about the import of a cluster by its kubeconfig.
	ConditionImported = "Imported"
	// ConditionReconciled tells about the last reconciliation of a cluster.
	ConditionReconciled = "Reconciled"
	// ConditionOnline is True while the agent of a cluster reports, False when
	// it is silent, and Unknown where the hub cannot judge. A cluster whose agent
	// has never reported has none.
	ConditionOnline = "Online"
	// ConditionRendered is False where a bundle could not be rendered for some
	// of its clusters; the message names them.
	ConditionRendered = "Rendered"
	// ConditionWarnings is True where something is not as its author will have
	// meant it, although it could be acted on; the message lists it.
	ConditionWarnings = "Warnings"
	// ConditionEffective is False where fields are set that have no effect yet;
	// the message names them.
	ConditionEffective = "Effective"
)

// Reasons of conditions.
const (
	// ReasonEffective means that every field that is set has its effect.
	ReasonEffective = "Effective"
	// ReasonNotYetEffective means that fields are accepted without effect.
	ReasonNotYetEffective = "NotYetEffective"
	// ReasonOnline means that the agent reports.
	ReasonOnline = "Online"
	// ReasonReportRefused means that the agent reports, and says of itself what
	// the hub does not take.
	ReasonReportRefused = "ReportRefused"
	// ReasonOffline means that the agent is silent.
	ReasonOffline = "Offline"
	// ReasonNeverSeen means that the agent has not reported yet.
	ReasonNeverSeen = "NeverSeen"
	// ReasonError is the reason where nothing more exact is known.
	ReasonError = "Error"
	// ReasonPolicyViolation means that a policy or restriction forbids it.
	ReasonPolicyViolation = "PolicyViolation"
)

// BundleState is the state of a deployment, or the worst of many.
type BundleState string

// States of a deployment, the best first.
const (
	// Ready deployments run and are as wanted.
	Ready BundleState = "Ready"
	// NotReady deployments are applied, and not all of their objects are ready.
	NotReady BundleState = "NotReady"
	// Pending deployments do not exist yet.
	Pending BundleState = "Pending"
	// OutOfSync deployments are held back at an older content.
	OutOfSync BundleState = "OutOfSync"
	// Modified deployments were changed on the cluster.
	Modified BundleState = "Modified"
	// WaitApplied deployments were not applied yet.
	WaitApplied BundleState = "WaitApplied"
	// ErrApplied deployments could not be applied.
	ErrApplied BundleState = "ErrApplied"
)

// StateOffline is shown for what a silent agent last said; it is not one of the
// states of a deployment.
const StateOffline BundleState = "Offline"
