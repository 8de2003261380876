package cli

import (
	"context"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/cli/overview"
	"github.com/flotilla-sh/flotilla/internal/status"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// sight is what the hub was found to show to this user.
type sight struct {
	// unread is why deployments cannot be read, if so.
	unread string
	// elsewhere are other namespaces whose clusters deployments are on, and
	// whether they can be read.
	elsewhere map[string]bool
	// settled is set once that does not change any more.
	settled bool
}

// gather reads what the report is made of.
func (f *statusFlags) gather(ctx context.Context, from client.Reader) (overview.Input, error) {
	repos, ops, bundles, clusters := &fleet.GitRepoList{}, &fleet.HelmOpList{}, &fleet.BundleList{}, &fleet.ClusterList{}
	for _, list := range []client.ObjectList{repos, ops, bundles, clusters} {
		if err := from.List(ctx, list, client.InNamespace(f.only())); err != nil {
			return overview.Input{}, err
		}
	}
	deployments, err := f.deployments(ctx, from)
	if err != nil {
		return overview.Input{}, err
	}
	others, err := f.others(ctx, from, deployments)
	return overview.Input{
		GitRepos: repos.Items, HelmOps: ops.Items, Bundles: bundles.Items,
		Clusters: append(clusters.Items, others...), Deployments: deployments,
		Namespace: f.only(), GitRepo: f.repo, Unread: f.unread,
	}, err
}

// selected are the labels of the deployments that are looked at. They are in the
// namespaces of their clusters, not in that of their bundle.
func (f *statusFlags) selected() labels.Set {
	of := labels.Set{}
	if !f.all {
		of[fleet.BundleNamespaceLabel] = f.namespace
	}
	if f.repo != "" {
		of[fleet.RepoLabel] = f.repo
	}
	return of
}

// deployments reads them where that is allowed, which takes the right to list
// those of all namespaces.
func (f *statusFlags) deployments(ctx context.Context, from client.Reader) ([]fleet.BundleDeployment, error) {
	if f.unread != "" {
		return nil, nil
	}
	list := &fleet.BundleDeploymentList{}
	err := from.List(ctx, list, client.MatchingLabels(f.selected()))
	if apierrors.IsForbidden(err) && !f.settled {
		f.unread = err.Error()
		return nil, nil
	}
	return list.Items, err
}

// others reads the clusters of other namespaces that deployments are on, where
// that is allowed.
func (f *statusFlags) others(ctx context.Context, from client.Reader, deployments []fleet.BundleDeployment) ([]fleet.Cluster, error) {
	if f.all {
		return nil, nil
	}
	named := map[string]bool{}
	for i := range deployments {
		named[status.PlaceOf(&deployments[i]).Cluster.Namespace] = true
	}
	delete(named, f.namespace)
	var found []fleet.Cluster
	for _, namespace := range slices.Sorted(maps.Keys(named)) {
		if readable, known := f.elsewhere[namespace]; known && !readable || !known && f.settled {
			continue
		}
		list := &fleet.ClusterList{}
		err := from.List(ctx, list, client.InNamespace(namespace))
		if err != nil && !apierrors.IsForbidden(err) {
			return nil, err
		}
		if f.elsewhere == nil {
			f.elsewhere = map[string]bool{}
		}
		f.elsewhere[namespace] = err == nil
		found = append(found, list.Items...)
	}
	return found, nil
}

// watched are the kinds to watch and what of them: no more than is shown.
func (f *statusFlags) watched() map[client.Object]cache.ByObject {
	here, clusters := map[string]cache.Config{f.only(): {}}, map[string]cache.Config{f.only(): {}}
	for namespace, readable := range f.elsewhere {
		if readable {
			clusters[namespace] = cache.Config{}
		}
	}
	all := map[client.Object]cache.ByObject{
		&fleet.GitRepo{}: {Namespaces: here}, &fleet.HelmOp{}: {Namespaces: here}, &fleet.Bundle{}: {Namespaces: here},
		&fleet.Cluster{}: {Namespaces: clusters},
	}
	if f.unread == "" {
		all[&fleet.BundleDeployment{}] = cache.ByObject{Label: f.selected().AsSelector()}
	}
	return all
}
