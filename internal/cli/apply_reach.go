package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// reachesNothing says why a Bundle goes to no cluster, where all that it goes to
// are cluster groups that are not there; empty where it may reach some, or where
// the hub does not let this user look.
func reachesNothing(ctx context.Context, hub client.Client, b *fleet.Bundle) string {
	var missing []string
	for _, name := range groupsOf(b) {
		if name == "" {
			return ""
		}
		err := hub.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: name}, &fleet.ClusterGroup{})
		if !apierrors.IsNotFound(err) {
			return ""
		}
		missing = append(missing, name)
	}
	// By a mapping the clusters and groups of other namespaces count.
	mappings := &fleet.BundleNamespaceMappingList{}
	if len(missing) == 0 || hub.List(ctx, mappings, client.InNamespace(b.Namespace)) != nil || len(mappings.Items) > 0 {
		return ""
	}
	return fmt.Sprintf("it goes to no cluster: namespace %s has no cluster group %s; make one there, or name clusters in --targets-file", b.Namespace, strings.Join(missing, ", "))
}

// groupsOf are the cluster groups that the targets name; an empty name stands for
// a target without one. Customizations choose no clusters.
func groupsOf(b *fleet.Bundle) []string {
	var names []string
	for _, t := range b.Spec.Targets[len(b.Spec.Targets)-len(b.Spec.TargetRestrictions):] {
		names = append(names, t.ClusterGroup)
	}
	if len(b.Spec.TargetRestrictions) == 0 {
		for _, t := range b.Spec.Targets {
			names = append(names, t.ClusterGroup)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
