package status

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Kind is a kind of object that a Board sums up.
type Kind string

// The kinds that a Board sums up.
const (
	KindBundle       Kind = "Bundle"
	KindCluster      Kind = "Cluster"
	KindGitRepo      Kind = "GitRepo"
	KindHelmOp       Kind = "HelmOp"
	KindClusterGroup Kind = "ClusterGroup"
)

// Parent names an object whose roll-up has changed.
type Parent struct {
	Kind Kind
	Name types.NamespacedName
}

// Board keeps the sums of a whole fleet. It is told of deployments, bundles and
// clusters, in any order, and answers whose status has to be written again. It
// is safe for concurrent use.
type Board struct {
	mu       sync.Mutex
	bundles  map[types.NamespacedName]*bundle
	clusters map[types.NamespacedName]*cluster
	repos    map[Parent]*repo
	groups   map[types.NamespacedName]*group
	// spaces finds the cluster of a deployment that is gone by its namespace.
	spaces map[string]*cluster
}

// NewBoard makes an empty board.
func NewBoard() *Board {
	return &Board{
		bundles:  map[types.NamespacedName]*bundle{},
		clusters: map[types.NamespacedName]*cluster{},
		repos:    map[Parent]*repo{},
		groups:   map[types.NamespacedName]*group{},
		spaces:   map[string]*cluster{},
	}
}

// Place says where a deployment belongs.
type Place struct {
	// Namespace and Name are the deployment's own.
	Namespace, Name string
	// Bundle and Cluster are its parents.
	Bundle, Cluster types.NamespacedName
	// Source is the GitRepo or HelmOp of the bundle, if any.
	Source Parent
}

// PlaceOf reads a deployment's labels.
func PlaceOf(bd *fleet.BundleDeployment) Place {
	l := bd.Labels
	p := Place{
		Namespace: bd.Namespace,
		Name:      bd.Name,
		Bundle:    types.NamespacedName{Namespace: l[fleet.BundleNamespaceLabel], Name: l[fleet.BundleLabel]},
		Cluster:   types.NamespacedName{Namespace: l[fleet.ClusterNamespaceLabel], Name: l[fleet.ClusterLabel]},
	}
	p.Source = SourceOf(p.Bundle.Namespace, l)
	return p
}

// SourceOf reads off the labels of a bundle in a namespace, or of one of its
// deployments, where the bundle comes from; nowhere is the zero value.
func SourceOf(namespace string, labels map[string]string) Parent {
	if name := labels[fleet.RepoLabel]; name != "" {
		return Parent{KindGitRepo, types.NamespacedName{Namespace: namespace, Name: name}}
	}
	if name := labels[fleet.HelmOpLabel]; name != "" {
		return Parent{KindHelmOp, types.NamespacedName{Namespace: namespace, Name: name}}
	}
	return Parent{}
}

// Observe takes in a deployment as it is now. One that is being removed does
// not count.
func (b *Board) Observe(bd *fleet.BundleDeployment) []Parent {
	if bd.Spec.Removal != nil || bd.DeletionTimestamp != nil {
		return b.Forget(bd.Namespace, bd.Name)
	}
	return b.Set(PlaceOf(bd), ContributionOf(bd))
}

// Set takes in what a deployment contributes.
func (b *Board) Set(p Place, x Contribution) []Parent {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, u, r := b.cluster(p.Cluster), b.bundle(p.Bundle), b.repo(p.Source)
	b.spaces[p.Namespace], c.space = c, p.Namespace
	var changed []Parent
	if !u.known {
		changed = b.adopt(u, r)
	}
	key := p.Name
	if key == u.name.Name {
		key = u.name.Name // one string for the whole fleet
	}
	return append(changed, b.update(c, key, &word{bundle: u, repo: r, exists: true, entry: entryOf(x)})...)
}

// Forget takes a deployment away.
func (b *Board) Forget(namespace, name string) []Parent {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, ok := b.spaces[namespace]
	if !ok {
		return nil
	}
	w, ok := c.words[name]
	if !ok || !w.exists {
		return nil
	}
	if _, held := w.bundle.facts.Held[c.name]; held {
		return b.update(c, name, &word{bundle: w.bundle, repo: w.repo, entry: entryOf(Contribution{State: fleet.Pending})})
	}
	return b.update(c, name, nil)
}

// update is the one place where sums change. It puts next in the place of what
// the board has under the key; nil takes that away.
func (b *Board) update(c *cluster, key string, next *word) []Parent {
	var changed []Parent
	prev, had := c.words[key]
	if had && (next == nil || next.bundle != prev.bundle || next.repo != prev.repo) {
		changed = c.parentsOf(prev)
		c.take(key, prev)
	}
	if next != nil {
		c.words[key] = *next
		if c.put(key, *next) {
			changed = append(changed, c.parentsOf(*next)...)
		}
	}
	if len(changed) > 0 {
		c.settle()
	}
	if had {
		b.tidy(c, prev)
	}
	return changed
}

// tidy drops what nobody refers to any more.
func (b *Board) tidy(c *cluster, w word) {
	b.tidyBundle(w.bundle)
	b.tidyRepo(w.repo)
	if len(c.words) == 0 && !c.known {
		delete(b.clusters, c.name)
		delete(b.spaces, c.space)
	}
}

func (b *Board) tidyBundle(u *bundle) {
	if len(u.counter.entries) > 0 || u.known {
		return
	}
	delete(b.bundles, u.name)
	if u.repo != nil {
		delete(u.repo.bundles, u.name)
		b.tidyRepo(u.repo)
	}
}

func (b *Board) tidyRepo(r *repo) {
	if r != nil && r.clusters == 0 && len(r.bundles) == 0 {
		delete(b.repos, r.parent)
	}
}

func (b *Board) bundle(name types.NamespacedName) *bundle {
	return lookUp(b.bundles, name, func() *bundle { return &bundle{name: name, counter: NewCounter(NounCluster)} })
}

func (b *Board) cluster(name types.NamespacedName) *cluster {
	return lookUp(b.clusters, name, func() *cluster { return newCluster(name) })
}

func (b *Board) group(name types.NamespacedName) *group {
	return lookUp(b.groups, name, func() *group { return &group{name: name} })
}

// repo returns nil for no GitRepo or HelmOp.
func (b *Board) repo(parent Parent) *repo {
	if parent.Name.Name == "" {
		return nil
	}
	return lookUp(b.repos, parent, func() *repo { return &repo{parent: parent, bundles: map[types.NamespacedName]*bundle{}} })
}

func lookUp[K comparable, V any](all map[K]*V, key K, make func() *V) *V {
	v, ok := all[key]
	if !ok {
		v = make()
		all[key] = v
	}
	return v
}

// uniqueParents drops repetitions; order does not matter to those who enqueue.
func uniqueParents(all []Parent) []Parent {
	seen := make(map[Parent]struct{}, len(all))
	return slices.DeleteFunc(all, func(p Parent) bool {
		_, twice := seen[p]
		seen[p] = struct{}{}
		return twice
	})
}
