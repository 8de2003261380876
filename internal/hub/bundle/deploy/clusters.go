package deploy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/hub/groups"
	"github.com/flotilla-sh/flotilla/internal/names"
	"github.com/flotilla-sh/flotilla/internal/pipeline"
	"github.com/flotilla-sh/flotilla/internal/target"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// knownClusters returns the namespaces of all clusters that exist.
func (c *Controller) knownClusters(ctx context.Context) (map[string]bool, error) {
	list := &fleet.ClusterList{}
	if err := c.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	known := make(map[string]bool, len(list.Items))
	for i := range list.Items {
		if registered(&list.Items[i]) {
			known[namespaceOf(&list.Items[i])] = true
		}
	}
	return known, nil
}

// candidates returns the clusters of the bundle's namespace and of those that
// a BundleNamespaceMapping opens to it, sorted. Where a group that the bundle
// asks for has an invalid selector, nobody can say who they are.
func (c *Controller) candidates(ctx context.Context, bundle *fleet.Bundle) ([]pipeline.Cluster, error) {
	namespaces, err := namespacesOf(ctx, c.Client, bundle)
	if err != nil {
		return nil, err
	}
	var out []pipeline.Cluster
	for _, ns := range namespaces {
		groups, err := groups.In(ctx, c.Client, ns)
		if err != nil {
			return nil, err
		}
		if err := unclear(bundle, groups); err != nil {
			return nil, err
		}
		clusters, err := c.clustersIn(ctx, ns, groups)
		if err != nil {
			return nil, err
		}
		out = append(out, clusters...)
	}
	return out, nil
}

func (c *Controller) clustersIn(ctx context.Context, namespace string, groups target.Groups) ([]pipeline.Cluster, error) {
	clusters := &fleet.ClusterList{}
	if err := c.Client.List(ctx, clusters, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	var out []pipeline.Cluster
	for i := range clusters.Items {
		cluster := &clusters.Items[i]
		if !registered(cluster) {
			continue
		}
		offers, err := c.Capabilities.Of(ctx, namespaceOf(cluster))
		if err != nil {
			return nil, err
		}
		out = append(out, pipeline.Cluster{Cluster: view(cluster, groups), Capabilities: offers})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

// namespacesOf returns the namespaces that have the clusters a bundle may go
// to, sorted, as from has them.
func namespacesOf(ctx context.Context, from client.Reader, bundle *fleet.Bundle) ([]string, error) {
	mappings := &fleet.BundleNamespaceMappingList{}
	if err := from.List(ctx, mappings, client.InNamespace(bundle.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list namespace mappings: %w", err)
	}
	found := map[string]bool{bundle.Namespace: true}
	for i := range mappings.Items {
		m := &mappings.Items[i]
		of := "BundleNamespaceMapping " + client.ObjectKeyFromObject(m).String()
		bundles, err := target.Selector(of+": bundleSelector", m.BundleSelector)
		if err != nil {
			return nil, err
		}
		if !bundles.Matches(labels.Set(bundle.Labels)) {
			continue
		}
		namespaces, err := target.Selector(of+": namespaceSelector", m.NamespaceSelector)
		if err != nil {
			return nil, err
		}
		if err := addNamespaces(ctx, from, namespaces, found); err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

func addNamespaces(ctx context.Context, from client.Reader, by labels.Selector, found map[string]bool) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := from.List(ctx, list, client.MatchingLabelsSelector{Selector: by}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list namespaces: %w", err)
	}
	for i := range list.Items {
		found[list.Items[i].Name] = true
	}
	return nil
}

// unclear is why nobody can say who is in a group that a target or restriction of
// the bundle asks for.
func unclear(bundle *fleet.Bundle, groups target.Groups) error {
	if groups.Valid() {
		return nil
	}
	matcher, err := target.NewMatcher(targeting(bundle))
	if err != nil {
		return err
	}
	return groups.Unclear(matcher)
}

// targeting is what targeting sees of a bundle, without values in Secrets.
func targeting(bundle *fleet.Bundle) target.Bundle {
	return target.Bundle{Namespace: bundle.Namespace, Name: bundle.Name, Labels: bundle.Labels, Spec: bundle.Spec}
}

// registered tells whether a cluster has its own namespace on the hub and stays.
func registered(cluster *fleet.Cluster) bool {
	has := cluster.Status.Namespace
	return has != "" && has == namespaceOf(cluster) && cluster.DeletionTimestamp.IsZero()
}

// namespaceOf is the namespace of a cluster's deployments. It is not read from
// the status, which others may write.
func namespaceOf(cluster *fleet.Cluster) string {
	return names.ClusterNamespace(cluster.Namespace, cluster.Name)
}

// view is what targeting sees of a cluster.
func view(cluster *fleet.Cluster, groups target.Groups) target.Cluster {
	v := target.Cluster{
		Namespace: cluster.Namespace, Name: cluster.Name,
		DeploymentNamespace: namespaceOf(cluster),
		Labels:              cluster.Labels, Annotations: cluster.Annotations,
		Groups: groups.Of(cluster.Labels),
		Paused: cluster.Spec.Paused,
	}
	if cluster.Spec.TemplateValues != nil {
		v.TemplateValues = cluster.Spec.TemplateValues.Data
	}
	return v
}
