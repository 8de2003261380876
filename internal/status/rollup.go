package status

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// stateGitUpdating is what a GitRepo shows while a commit is worked on.
const stateGitUpdating = "GitUpdating"

// gitJobCurrent is the state of a GitRepo whose commit is worked in.
const gitJobCurrent = "Current"

// BundleRollUp is the part of a Bundle's status that its deployments make.
type BundleRollUp struct {
	Summary fleet.BundleSummary
	Display fleet.BundleDisplay
	Ready   fleet.Condition
}

// Bundle sums up a bundle.
func (b *Board) Bundle(name types.NamespacedName) BundleRollUp {
	b.mu.Lock()
	defer b.mu.Unlock()
	u, ok := b.bundles[name]
	if !ok {
		u = &bundle{counter: NewCounter(NounCluster)}
	}
	return BundleRollUp{
		Summary: u.counter.Summary(),
		Display: fleet.BundleDisplay{ReadyClusters: u.counter.Display(), State: u.counter.Worst()},
		Ready:   bundleReady(u),
	}
}

// ClusterRollUp is the part of a Cluster's status that its deployments make.
type ClusterRollUp struct {
	Summary        fleet.BundleSummary
	ResourceCounts fleet.ResourceCounts
	Display        fleet.ClusterDisplay
	// ReadyGitRepos counts GitRepos all of whose deployments here are ready.
	ReadyGitRepos, DesiredReadyGitRepos int
	// ReadyHelmOps counts HelmOps alike.
	ReadyHelmOps, DesiredReadyHelmOps int
	Ready                             fleet.Condition
}

// Cluster sums up a cluster.
func (b *Board) Cluster(name types.NamespacedName) ClusterRollUp {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, ok := b.clusters[name]
	if !ok {
		c = newCluster(name)
	}
	r := ClusterRollUp{
		Summary:        c.counter.Summary(),
		ResourceCounts: c.counter.resources,
		Display:        fleet.ClusterDisplay{ReadyBundles: c.counter.Display(), State: c.state()},
		Ready:          clusterReady(c),
	}
	for repo, s := range c.shares {
		ready, desired := &r.ReadyGitRepos, &r.DesiredReadyGitRepos
		if repo.parent.Kind == KindHelmOp {
			ready, desired = &r.ReadyHelmOps, &r.DesiredReadyHelmOps
		}
		*desired++
		if s.ready == s.total {
			*ready++
		}
	}
	return r
}

func (c *cluster) state() string {
	switch {
	case c.unseen:
		return stateWaitCheckIn
	case c.silence != nil:
		return string(fleet.StateOffline)
	default:
		return c.counter.Worst()
	}
}

// GroupRollUp is the part of a ClusterGroup's status that its clusters make.
type GroupRollUp struct {
	ClusterCount, NonReadyClusterCount int
	// NonReadyClusters names the first ten.
	NonReadyClusters []string
	Summary          fleet.BundleSummary
	ResourceCounts   fleet.ResourceCounts
	Display          fleet.ClusterGroupDisplay
	Ready            fleet.Condition
}

// ClusterGroup sums up a cluster group.
func (b *Board) ClusterGroup(name types.NamespacedName) GroupRollUp {
	b.mu.Lock()
	defer b.mu.Unlock()
	g, ok := b.groups[name]
	if !ok {
		g = &group{}
	}
	r := GroupRollUp{
		ClusterCount:         g.clusters,
		NonReadyClusterCount: len(g.nonReady),
		NonReadyClusters:     g.names(),
		Summary:              g.summary(),
		ResourceCounts:       g.resources,
		Display: fleet.ClusterGroupDisplay{
			ReadyClusters: g.readyText(), ReadyBundles: g.Display(), State: g.state(),
		},
		Ready: groupReady(g),
	}
	for _, c := range g.nonReady[:min(maxNonReady, len(g.nonReady))] {
		r.Summary.NonReadyResources = append(r.Summary.NonReadyResources, fleet.NonReadyResource{
			Name: c.label, State: fleet.BundleState(c.state()), Message: clusterReady(c).Message,
		})
	}
	return r
}

// names lists the first clusters that are not ready.
func (g *group) names() []string {
	var names []string
	for _, c := range g.nonReady[:min(maxNonReady, len(g.nonReady))] {
		names = append(names, c.label)
	}
	return names
}

func (g *group) readyText() string {
	text := fmt.Sprintf("%d/%d", g.clusters-len(g.nonReady), g.clusters)
	if len(g.nonReady) == 0 {
		return text
	}
	names := strings.Join(g.names(), ", ")
	if len(g.nonReady) > maxNonReady {
		names += ", …"
	}
	return text + " (" + names + ")"
}

func (g *group) state() string {
	if len(g.nonReady) > 0 && g.allReady() {
		return string(fleet.StateOffline)
	}
	return g.Worst()
}

// GitRepoRollUp is the part of a GitRepo's or HelmOp's status that its bundles
// make.
type GitRepoRollUp struct {
	ReadyClusters, DesiredReadyClusters int
	Summary                             fleet.BundleSummary
	ResourceCounts                      fleet.ResourceCounts
	Display                             fleet.StatusDisplay
	// Resources are the first objects that are not as they should be.
	Resources []fleet.Resource
	Ready     fleet.Condition
}

// GitRepo sums up a GitRepo; gitJobStatus is that of its status.
func (b *Board) GitRepo(name types.NamespacedName, gitJobStatus string) GitRepoRollUp {
	return b.source(Parent{KindGitRepo, name}, gitJobStatus)
}

// HelmOp sums up a HelmOp.
func (b *Board) HelmOp(name types.NamespacedName) GitRepoRollUp {
	return b.source(Parent{KindHelmOp, name}, "")
}

func (b *Board) source(name Parent, gitJobStatus string) GitRepoRollUp {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.repos[name]
	if !ok {
		p = &repo{}
	}
	sum, named := p.sum()
	r := GitRepoRollUp{
		ReadyClusters: p.readyClusters, DesiredReadyClusters: p.clusters,
		Summary: sum.summary(), ResourceCounts: sum.resources,
		Resources: resourcesOf(p), Ready: gitRepoReady(p),
	}
	r.Summary.NonReadyResources = named
	r.Display = fleet.StatusDisplay{
		ReadyBundleDeployments: sum.Display(), State: sum.Worst(), Message: r.Ready.Message,
		Error: sum.worst() == errApplied || r.Ready.Reason == fleet.ReasonError,
	}
	if gitJobStatus != "" && gitJobStatus != gitJobCurrent {
		r.Display.State = stateGitUpdating
	}
	return r
}

// sum adds the bundles up, and names those that are not ready: the worst of
// each one's deployments stands for it.
func (r *repo) sum() (tally, []fleet.NonReadyResource) {
	var t tally
	var named []fleet.NonReadyResource
	for _, u := range r.sorted() {
		t.merge(u.counter.tally)
		if u.counter.allReady() || len(named) == maxNonReady {
			continue
		}
		first := u.counter.resource(u.counter.sorted[u.counter.worst()][0])
		first.Name = u.name.Name
		named = append(named, first)
	}
	return t, named
}
