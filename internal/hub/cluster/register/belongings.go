package register

import (
	"maps"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/names"
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

// belongings are the objects that a cluster has on the hub, in its namespace
// but for what lets its agent patch its Cluster. Those of one list are made one
// after the other. The Lease tells the agent which hub it serves.
func belongings(cluster *fleet.Cluster, namespace, hub string) [][]client.Object {
	from := origin(cluster)
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labelsOf(from), Annotations: from}
	}
	lease := &coordinationv1.Lease{ObjectMeta: meta(fleet.AgentName)}
	lease.Annotations = maps.Clone(from)
	lease.Annotations[fleet.HubAnnotation] = hub
	agent := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: fleet.AgentName}
	self := names.SafeConcat(fleet.AgentName, cluster.Name, names.KeyHash(cluster.Name))
	return [][]client.Object{
		{&corev1.ServiceAccount{ObjectMeta: meta(fleet.AgentName)}},
		{&rbacv1.RoleBinding{
			ObjectMeta: meta(fleet.AgentName),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: fleet.AgentName},
			Subjects:   []rbacv1.Subject{agent},
		}},
		{selfRole(cluster, self), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: self, Labels: labelsOf(from)},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: self},
			Subjects:   []rbacv1.Subject{agent},
		}},
		{lease},
		{&corev1.ConfigMap{ObjectMeta: meta(fleet.CapabilitiesName)}},
	}
}

// selfRole lets an agent say on its own Cluster when it was last seen.
func selfRole(cluster *fleet.Cluster, name string) *rbacv1.Role {
	return &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: name},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{fleet.Group}, Resources: []string{"clusters/status"},
			ResourceNames: []string{cluster.Name}, Verbs: []string{"patch"},
		}},
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
