package render

import (
	"cmp"
	"slices"
	"strings"
)

// installOrder is the order in which Helm installs kinds, after definitions
// and namespaces, which everything else may need.
const installOrder = `CustomResourceDefinition Namespace PriorityClass NetworkPolicy ResourceQuota LimitRange
PodSecurityPolicy PodDisruptionBudget ServiceAccount Secret ConfigMap StorageClass PersistentVolume PersistentVolumeClaim
ClusterRole ClusterRoleBinding Role RoleBinding Service DaemonSet Pod ReplicationController ReplicaSet Deployment
HorizontalPodAutoscaler StatefulSet Job CronJob IngressClass Ingress APIService`

// sortObjects brings objects into the order in which they are applied, which
// depends on nothing but the objects themselves.
func sortObjects(objects []Object) {
	ranks := map[string]int{}
	for i, kind := range strings.Fields(installOrder) {
		ranks[kind] = i
	}
	rank := func(o *Object) int {
		if r, ok := ranks[o.Kind]; ok {
			return r
		}
		return len(ranks)
	}
	slices.SortStableFunc(objects, func(a, b Object) int {
		return cmp.Or(
			cmp.Compare(rank(&a), rank(&b)),
			strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Name, b.Name),
			strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.APIVersion, b.APIVersion),
		)
	})
}
