package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GitRepo is a Git repository that is watched, and whose directories become bundles.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=gitrepos,categories=fleet
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Repo",type=string,JSONPath=`.spec.repo`
// +kubebuilder:printcolumn:name="Commit",type=string,JSONPath=`.status.commit`
// +kubebuilder:printcolumn:name="BundleDeployments-Ready",type=string,JSONPath=`.status.display.readyBundleDeployments`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type GitRepo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	// +optional
	Spec GitRepoSpec `json:"spec,omitempty,omitzero"`
	// Status is what was seen.
	// +optional
	// +structType=atomic
	Status GitRepoStatus `json:"status,omitempty,omitzero"`
}

// GitRepoList is a list of GitRepo objects.
//
// +kubebuilder:object:root=true
type GitRepoList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items are the objects of the list.
	Items []GitRepo `json:"items"`
}

// GitRepoSpec is what is wanted of a Git repository.
type GitRepoSpec struct {
	// Repo is the URL of the repository: https, ssh, git or user@host:path.
	// +kubebuilder:validation:MinLength=1
	Repo string `json:"repo"`
	// Branch is the branch to follow; empty means master, unless Revision is set.
	// +optional
	// +nullable
	Branch string `json:"branch,omitempty"`
	// Revision is a tag or a commit of 40 hex digits; it wins over Branch.
	// +optional
	// +nullable
	Revision string `json:"revision,omitempty"`
	// TargetNamespace forces all objects into this namespace.
	// +optional
	// +nullable
	TargetNamespace string `json:"targetNamespace,omitempty"`
	// ClientSecretName is the Secret with the credentials of the Git server; empty
	// means gitcredential, where it exists.
	// +optional
	// +nullable
	ClientSecretName string `json:"clientSecretName,omitempty"`
	// HelmSecretName is the Secret with the credentials of Helm repositories.
	// +optional
	// +nullable
	HelmSecretName string `json:"helmSecretName,omitempty"`
	// HelmSecretNameForPaths is the Secret with Helm credentials for each path; it
	// wins over HelmSecretName.
	// +optional
	// +nullable
	HelmSecretNameForPaths string `json:"helmSecretNameForPaths,omitempty"`
	// HelmRepoURLRegex must match the whole URL of a Helm repository for
	// credentials to be sent to it; empty means that none are ever sent.
	// +optional
	// +nullable
	HelmRepoURLRegex string `json:"helmRepoURLRegex,omitempty"`
	// CABundle are the certificates, in PEM, to check the Git server with.
	// +optional
	// +nullable
	CABundle []byte `json:"caBundle,omitempty"`
	// InsecureSkipTLSverify does not check the certificate of the Git server.
	// +optional
	InsecureSkipTLSverify bool `json:"insecureSkipTLSVerify,omitempty"`
	// Paths are the directories, or patterns of them, that are scanned for
	// bundles; empty means the root.
	// +optional
	// +nullable
	// +listType=atomic
	Paths []string `json:"paths,omitempty"`
	// Bundles are the directories that are bundles, without a scan; they replace
	// Paths.
	// +optional
	// +nullable
	// +listType=atomic
	Bundles []BundlePath `json:"bundles,omitempty"`
	// Paused stages new commits and does not roll them out.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// ServiceAccount is the account in the agent's namespace that the agents act
	// as.
	// +optional
	// +nullable
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// Targets are the clusters to deploy to; empty means the cluster group
	// default.
	// +optional
	// +nullable
	// +listType=atomic
	Targets []GitTarget `json:"targets,omitempty"`
	// PollingInterval is how often the Git server is asked; unset means 15s, or 1h
	// once a webhook has come.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == '0' || (self.matches('^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('2562047h'))",message="must be a duration with the units ns, us, µs, ms, s, m and h, such as 15s, 5m or 1h30m, of at most 2562047h; days (d) and weeks (w) are not known: write 24h or 168h"
	PollingInterval *metav1.Duration `json:"pollingInterval,omitempty"`
	// Flotilla: ChartPollingInterval is how often newer versions of charts are
	// looked for between commits, where helm.version is a constraint or empty;
	// unset and 0 mean never.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == '0' || (self.matches('^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('2562047h'))",message="must be a duration with the units ns, us, µs, ms, s, m and h, such as 15s, 5m or 1h30m, of at most 2562047h; days (d) and weeks (w) are not known: write 24h or 168h"
	ChartPollingInterval *metav1.Duration `json:"chartPollingInterval,omitempty"`
	// DisablePolling waits for webhooks alone.
	// +optional
	DisablePolling bool `json:"disablePolling,omitempty"`
	// WebhookSecret is the Secret that webhooks of this repository are checked
	// with.
	// +optional
	// +nullable
	WebhookSecret string `json:"webhookSecret,omitempty"`
	// OCIRegistrySecret is the Secret with the registry where contents are stored;
	// empty means ocistorage, where it exists.
	// +optional
	// +nullable
	OCIRegistrySecret string `json:"ociRegistrySecret,omitempty"`
	// ForceSyncGeneration fetches and deploys again when it is raised.
	// +optional
	ForceSyncGeneration int64 `json:"forceSyncGeneration,omitempty"`
	// KeepResources leaves the objects on the clusters when the GitRepo goes.
	// +optional
	KeepResources bool `json:"keepResources,omitempty"`
	// DeleteNamespace deletes the target namespace together with the GitRepo.
	// +optional
	DeleteNamespace bool `json:"deleteNamespace,omitempty"`
	// CorrectDrift puts objects back that were changed on a cluster.
	// +optional
	// +nullable
	CorrectDrift *CorrectDrift `json:"correctDrift,omitempty"`
	// ImageSyncInterval is how often new image tags are written to Git.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == '0' || (self.matches('^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('2562047h'))",message="must be a duration with the units ns, us, µs, ms, s, m and h, such as 15s, 5m or 1h30m, of at most 2562047h; days (d) and weeks (w) are not known: write 24h or 168h"
	ImageSyncInterval *metav1.Duration `json:"imageScanInterval,omitempty"`
	// ImageScanCommit says how the commits with new image tags look.
	// +optional
	// +nullable
	ImageScanCommit *CommitSpec `json:"imageScanCommit,omitempty"`
	// Verify refuses commits that are not signed by a known key, neither themselves
	// nor by the tag in Revision; what was deployed before stays. It is an addition
	// of Flotilla.
	// +optional
	// +nullable
	Verify *CommitVerification `json:"verify,omitempty"`
}

// CommitVerification says whose signature a commit needs.
type CommitVerification struct {
	// SecretName is the Secret, in the namespace of the GitRepo, with public keys:
	// each value holds armored PGP keys, or SSH keys one a line.
	// +kubebuilder:validation:MinLength=1
	SecretName string `json:"secretName"`
}

// BundlePath is a directory that is a bundle.
type BundlePath struct {
	// Base is the directory.
	// +optional
	Base string `json:"base,omitempty"`
	// Options is the file below Base that is read in place of fleet.yaml.
	// +optional
	// +nullable
	Options string `json:"options,omitempty"`
}

// CommitSpec says how a commit looks.
type CommitSpec struct {
	// AuthorName is the name of the author.
	// +optional
	// +nullable
	AuthorName string `json:"authorName,omitempty"`
	// AuthorEmail is the e-mail address of the author.
	// +optional
	// +nullable
	AuthorEmail string `json:"authorEmail,omitempty"`
	// MessageTemplate is the message, as a Go template.
	// +optional
	// +nullable
	MessageTemplate string `json:"messageTemplate,omitempty"`
}

// GitRepoStatus is what was seen of a Git repository.
type GitRepoStatus struct {
	StatusBase `json:",inline"`
	// ObservedGeneration is the generation that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// UpdateGeneration is the last force-sync generation that was acted on.
	// +optional
	UpdateGeneration int64 `json:"updateGeneration,omitempty"`
	// Commit is the commit that the bundles come from.
	// +optional
	Commit string `json:"commit,omitempty"`
	// PollingCommit is the commit that the last poll found.
	// +optional
	PollingCommit string `json:"pollingCommit,omitempty"`
	// PollingSource is a digest of the repository and the branch or revision that
	// PollingCommit was found at. While it is not that of the spec, PollingCommit
	// is not deployed.
	// +optional
	PollingSource string `json:"pollingSource,omitempty"`
	// WebhookCommit is the commit that the last webhook named.
	// +optional
	WebhookCommit string `json:"webhookCommit,omitempty"`
	// LastWebhookTime is when the last webhook came.
	// +optional
	// +nullable
	LastWebhookTime metav1.Time `json:"lastWebhookTime,omitempty,omitzero"`
	// GitJobStatus is the state of the work on the commit: InProgress, Current or
	// Failed.
	// +optional
	GitJobStatus string `json:"gitJobStatus,omitempty"`
	// LastSyncedImageScanTime is when image tags were written last.
	// +optional
	// +nullable
	LastSyncedImageScanTime metav1.Time `json:"lastSyncedImageScanTime,omitempty,omitzero"`
	// LastPollingTime is when the last poll began.
	// +optional
	// +nullable
	LastPollingTime metav1.Time `json:"lastPollingTriggered,omitempty,omitzero"`
}
