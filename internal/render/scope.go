package render

import "strings"

// builtinScope returns the scope of a kind that every API server has. Their
// scopes never change, so nobody needs to be asked.
func builtinScope(apiVersion, kind string) Scope {
	key := groupKind(apiVersion, kind)
	switch {
	case listed(clusterKinds, key):
		return ClusterScope
	case listed(namespacedKinds, key):
		return NamespaceScope
	}
	return UnknownScope
}

// listed finds group/Kind in a table whose lines are "group: Kind Kind".
func listed(table, key string) bool {
	group, kind, _ := strings.Cut(key, "/")
	for line := range strings.Lines(table) {
		name, kinds, _ := strings.Cut(line, ":")
		if name != group {
			continue
		}
		for candidate := range strings.FieldsSeq(kinds) {
			if candidate == kind {
				return true
			}
		}
	}
	return false
}

const clusterKinds = `: Namespace Node PersistentVolume ComponentStatus
admissionregistration.k8s.io: MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration
apiextensions.k8s.io: CustomResourceDefinition
apiregistration.k8s.io: APIService
certificates.k8s.io: CertificateSigningRequest ClusterTrustBundle
flowcontrol.apiserver.k8s.io: FlowSchema PriorityLevelConfiguration
internal.apiserver.k8s.io: StorageVersion
networking.k8s.io: IngressClass IPAddress ServiceCIDR
node.k8s.io: RuntimeClass
policy: PodSecurityPolicy
rbac.authorization.k8s.io: ClusterRole ClusterRoleBinding
resource.k8s.io: DeviceClass DeviceTaintRule ResourceSlice
scheduling.k8s.io: PriorityClass
storage.k8s.io: CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass
storagemigration.k8s.io: StorageVersionMigration
`

const namespacedKinds = `: ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount
apps: ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet
autoscaling: HorizontalPodAutoscaler
batch: CronJob Job
certificates.k8s.io: PodCertificateRequest
coordination.k8s.io: Lease LeaseCandidate
discovery.k8s.io: EndpointSlice
events.k8s.io: Event
extensions: DaemonSet Deployment Ingress NetworkPolicy ReplicaSet
networking.k8s.io: Ingress NetworkPolicy
policy: PodDisruptionBudget
rbac.authorization.k8s.io: Role RoleBinding
resource.k8s.io: ResourceClaim ResourceClaimTemplate
scheduling.k8s.io: PodGroup Workload
storage.k8s.io: CSIStorageCapacity
`
