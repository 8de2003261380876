package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/content/registry"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/hub/registries"
	"github.com/flotilla-sh/flotilla/internal/names"
	"github.com/flotilla-sh/flotilla/internal/pipeline"
	"github.com/flotilla-sh/flotilla/internal/target"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// soon is when to look again for an object that another write precedes.
const soon = time.Second

// facts is everything that a decision about one bundle depends on.
type facts struct {
	input        pipeline.Input
	existing     []fleet.BundleDeployment
	known        map[string]bool
	sourceDigest string
	// at is the registry for the content; nil for the API server.
	at *registries.Place
}

func (c *Controller) gather(ctx context.Context, bundle *fleet.Bundle) (*facts, error) {
	f := &facts{}
	spec, err := c.withValues(ctx, bundle)
	if err != nil {
		return nil, err
	}
	src, err := c.sources.of(ctx, c.Store, bundle)
	if err != nil {
		return nil, err
	}
	f.sourceDigest = src.digest
	if f.existing, err = c.existing(ctx, bundle); err != nil {
		return nil, err
	}
	if f.at, err = c.Registries.Of(ctx, bundle); err != nil {
		return nil, err
	}
	earlier, err := c.remembered(ctx, f.existing, f.at)
	if err != nil {
		return nil, err
	}
	if f.known, err = c.knownClusters(ctx); err != nil {
		return nil, err
	}
	copies, err := c.copies(ctx, bundle, spec)
	if err != nil {
		return nil, err
	}
	clusters, err := c.candidates(ctx, bundle)
	if err != nil {
		return nil, err
	}
	f.input = pipeline.Input{
		Bundle: target.Bundle{
			Namespace: bundle.Namespace, Name: bundle.Name, Labels: bundle.Labels, Spec: *spec,
		},
		Files:        src.files,
		SourceDigest: src.digest,
		Commit:       bundle.Labels[fleet.CommitLabel],
		Clusters:     clusters,
		Copies:       copies,
		Remembered:   earlier,
		Keep:         c.keep(f.at),
	}
	return f, nil
}

// withValues returns the bundle's spec with the Helm values of its Secret.
func (c *Controller) withValues(ctx context.Context, bundle *fleet.Bundle) (*fleet.BundleSpec, error) {
	spec := bundle.Spec.DeepCopy()
	if spec.ValuesHash == "" {
		return spec, nil
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: bundle.Namespace, Name: names.ValuesSecret(bundle.Name, spec.ValuesHash)}
	err := c.Live.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, fault.Wait(soon, "WaitingForValues", fmt.Errorf("the Secret %s with the Helm values is not there (yet)", key))
	}
	if err != nil {
		return nil, fmt.Errorf("read the Helm values: %w", err)
	}
	if err := putValues(&spec.Helm, secret.Data[names.ValuesKey(-1)]); err != nil {
		return nil, err
	}
	for i := range spec.Targets {
		if err := putValues(&spec.Targets[i].Helm, secret.Data[names.ValuesKey(i)]); err != nil {
			return nil, err
		}
	}
	return spec, nil
}

func putValues(helm **fleet.HelmOptions, raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	if *helm == nil {
		*helm = &fleet.HelmOptions{}
	}
	(*helm).Values = &fleet.GenericMap{}
	if err := json.Unmarshal(raw, (*helm).Values); err != nil {
		return fault.Stall("InvalidValues", fmt.Errorf("stored Helm values are damaged: %w", err))
	}
	return nil
}

// existing returns the deployments of a bundle, as the cache has them: they are
// not to be changed.
func (c *Controller) existing(ctx context.Context, bundle *fleet.Bundle) ([]fleet.BundleDeployment, error) {
	list := &fleet.BundleDeploymentList{}
	err := c.Client.List(ctx, list, client.UnsafeDisableDeepCopy,
		client.MatchingFields{BundleIndex: client.ObjectKeyFromObject(bundle).String()})
	if err != nil {
		return nil, fmt.Errorf("list deployments: %w", err)
	}
	return list.Items, nil
}

// existingLive returns them past the cache: one that was just created must not
// be missed when the bundle goes.
func (c *Controller) existingLive(ctx context.Context, bundle *fleet.Bundle) ([]fleet.BundleDeployment, error) {
	list := &fleet.BundleDeploymentList{}
	err := c.Live.List(ctx, list, client.MatchingLabels{
		fleet.BundleLabel: bundle.Name, fleet.BundleNamespaceLabel: bundle.Namespace,
	})
	if err != nil {
		return nil, fmt.Errorf("list deployments: %w", err)
	}
	return list.Items, nil
}

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
// a BundleNamespaceMapping opens to it, sorted.
func (c *Controller) candidates(ctx context.Context, bundle *fleet.Bundle) ([]pipeline.Cluster, error) {
	namespaces, err := c.namespaces(ctx, bundle)
	if err != nil {
		return nil, err
	}
	var out []pipeline.Cluster
	for _, ns := range namespaces {
		clusters, err := c.clustersIn(ctx, ns)
		if err != nil {
			return nil, err
		}
		out = append(out, clusters...)
	}
	return out, nil
}

func (c *Controller) namespaces(ctx context.Context, bundle *fleet.Bundle) ([]string, error) {
	mappings := &fleet.BundleNamespaceMappingList{}
	if err := c.Client.List(ctx, mappings, client.InNamespace(bundle.Namespace)); err != nil {
		return nil, fmt.Errorf("list namespace mappings: %w", err)
	}
	found := map[string]bool{bundle.Namespace: true}
	for i := range mappings.Items {
		m := &mappings.Items[i]
		matches, err := selects(m.BundleSelector, bundle.Labels)
		if err != nil || !matches {
			continue
		}
		if err := c.addNamespaces(ctx, m.NamespaceSelector, found); err != nil {
			return nil, err
		}
	}
	out := make([]string, 0, len(found))
	for ns := range found {
		out = append(out, ns)
	}
	sort.Strings(out)
	return out, nil
}

func (c *Controller) addNamespaces(ctx context.Context, by *metav1.LabelSelector, found map[string]bool) error {
	if by == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(by)
	if err != nil {
		return fault.Stall("InvalidSelector", fmt.Errorf("namespaceSelector of a BundleNamespaceMapping: %w", err))
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := c.Client.List(ctx, list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("list namespaces: %w", err)
	}
	for i := range list.Items {
		found[list.Items[i].Name] = true
	}
	return nil
}

func (c *Controller) clustersIn(ctx context.Context, namespace string) ([]pipeline.Cluster, error) {
	clusters := &fleet.ClusterList{}
	if err := c.Client.List(ctx, clusters, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	groups := &fleet.ClusterGroupList{}
	if err := c.Client.List(ctx, groups, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list cluster groups: %w", err)
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
		out = append(out, pipeline.Cluster{Cluster: view(cluster, groups.Items), Capabilities: offers})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

// registered tells whether a cluster has its namespace on the hub and stays.
func registered(cluster *fleet.Cluster) bool {
	return cluster.Status.Namespace != "" && cluster.DeletionTimestamp.IsZero()
}

// namespaceOf is the namespace of a cluster's deployments. It is not read from
// the status, which an agent may write.
func namespaceOf(cluster *fleet.Cluster) string {
	return names.ClusterNamespace(cluster.Namespace, cluster.Name)
}

// view is what targeting sees of a cluster.
func view(cluster *fleet.Cluster, groups []fleet.ClusterGroup) target.Cluster {
	v := target.Cluster{
		Namespace: cluster.Namespace, Name: cluster.Name,
		DeploymentNamespace: namespaceOf(cluster),
		Labels:              cluster.Labels, Annotations: cluster.Annotations,
		Paused: cluster.Spec.Paused,
	}
	if cluster.Spec.TemplateValues != nil {
		v.TemplateValues = cluster.Spec.TemplateValues.Data
	}
	for i := range groups {
		if ok, _ := selects(groups[i].Spec.Selector, cluster.Labels); ok {
			v.Groups = append(v.Groups, target.Group{Name: groups[i].Name, Labels: groups[i].Labels})
		}
	}
	return v
}

// selects tells whether a selector is there and matches.
func selects(s *metav1.LabelSelector, set map[string]string) (bool, error) {
	if s == nil {
		return false, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return false, err
	}
	return selector.Matches(labels.Set(set)), nil
}

// remembered reads the last renders off the deployments. One whose content is
// not stored any more is rendered anew.
func (c *Controller) remembered(ctx context.Context, existing []fleet.BundleDeployment, at *registries.Place) (map[string]pipeline.Remembered, error) {
	out := make(map[string]pipeline.Remembered, len(existing))
	for i := range existing {
		spec := &existing[i].Spec
		if spec.Content == nil || spec.RenderInput == "" {
			continue
		}
		stored, err := c.stored(ctx, spec.Content, at)
		if err != nil {
			return nil, err
		}
		if stored {
			out[existing[i].Namespace] = pipeline.Remembered{Input: spec.RenderInput, Asked: spec.RenderAsked, Content: *spec.Content}
		}
	}
	return out, nil
}

// stored tells whether a content is where it is to be. A registry that cannot
// be asked is taken to have kept what it had: what changes nothing goes on
// without it.
func (c *Controller) stored(ctx context.Context, ref *fleet.ContentRef, at *registries.Place) (bool, error) {
	if at == nil {
		return c.Store.Has(ctx, content.Ref{Name: ref.Name}, "")
	}
	stored, err := at.Has(ctx, ref.Name)
	if err != nil && ref.Registry == at.Name && (registry.Unreachable(err) || registry.Unauthorized(err)) {
		return true, nil
	}
	return stored, err
}
