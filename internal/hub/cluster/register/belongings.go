package register

import (
	"maps"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// origin names the Cluster that something belongs to: as labels for selectors,
// and as annotations because the names may be longer than a label's value.
func origin(cluster *fleet.Cluster) map[string]string {
	return map[string]string{
		fleet.ClusterLabel:          cluster.Name,
		fleet.ClusterNamespaceLabel: cluster.Namespace,
	}
}

// space is the namespace of a cluster.
func space(cluster *fleet.Cluster, namespace string) *corev1.Namespace {
	from := origin(cluster)
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: labelsOf(from), Annotations: from}}
}

// belongings are the objects that a cluster has in its namespace on the hub. The
// Lease tells the agent which hub it serves.
func belongings(cluster *fleet.Cluster, namespace, hub string) []client.Object {
	from := origin(cluster)
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labelsOf(from), Annotations: from}
	}
	lease := &coordinationv1.Lease{ObjectMeta: meta(fleet.AgentName)}
	lease.Annotations = maps.Clone(from)
	lease.Annotations[fleet.HubAnnotation] = hub
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta(fleet.AgentName)},
		&rbacv1.RoleBinding{
			ObjectMeta: meta(fleet.AgentName),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: fleet.AgentName},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: fleet.AgentName}},
		},
		lease,
		&corev1.ConfigMap{ObjectMeta: meta(fleet.CapabilitiesName)},
	}
}

func labelsOf(origin map[string]string) map[string]string {
	l := map[string]string{fleet.ManagedLabel: "true"}
	for k, v := range origin {
		if len(v) <= 63 {
			l[k] = v
		}
	}
	return l
}
