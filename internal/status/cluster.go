package status

import (
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// ClusterFacts are what a roll-up needs to know of a cluster beside its
// deployments.
type ClusterFacts struct {
	// Groups that the cluster belongs to.
	Groups []types.NamespacedName
	// Silence says since when the agent is silent; empty while it reports.
	Silence string
	// Unseen: the agent has never reported.
	Unseen bool
}

// cluster is what a board knows of a cluster.
type cluster struct {
	name types.NamespacedName
	// label is the name in lists and messages.
	label string
	// space is the namespace of its deployments.
	space   string
	counter *Counter
	// words are the last words on its deployments, by name.
	words map[string]word
	// shares are its parts of GitRepos and HelmOps.
	shares map[*repo]*share
	groups []*group
	// silence is what to say of every deployment while the agent is silent.
	silence *Detail
	unseen  bool
	known   bool
	// shownReady is what its groups have counted.
	shownReady bool
}

// word is the last word on a deployment, kept while its cluster is silent.
type word struct {
	bundle *bundle
	repo   *repo
	// exists is false for a place that is held back and has no deployment.
	exists bool
	entry
}

// share counts the deployments of one GitRepo on one cluster.
type share struct{ total, ready int }

func newCluster(name types.NamespacedName) *cluster {
	return &cluster{
		name: name, label: name.String(), counter: NewCounter(NounBundle),
		words: map[string]word{}, shares: map[*repo]*share{}, shownReady: true,
	}
}

// SetCluster takes in a cluster as it is now.
func (b *Board) SetCluster(name types.NamespacedName, facts ClusterFacts) []Parent {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.cluster(name)
	changed := b.join(c, facts.Groups)
	if !c.known || c.unseen != facts.Unseen || silenceText(c.silence) != facts.Silence {
		changed = append(changed, c.parents()...)
	}
	c.known, c.unseen = true, facts.Unseen
	if silenceText(c.silence) != facts.Silence {
		changed = append(changed, b.silence(c, facts.Silence)...)
	}
	c.settle()
	return uniqueParents(changed)
}

// DeleteCluster forgets a cluster; its deployments count until they go.
func (b *Board) DeleteCluster(name types.NamespacedName) []Parent {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, ok := b.clusters[name]
	if !ok {
		return nil
	}
	changed := append(b.join(c, nil), Parent{KindCluster, name})
	c.known = false
	if len(c.words) == 0 {
		delete(b.clusters, name)
		delete(b.spaces, c.space)
	}
	return changed
}

func silenceText(d *Detail) string {
	if d == nil {
		return ""
	}
	return d.Message
}

// silence shows all deployments of the cluster as offline, or again as their
// last words say.
func (b *Board) silence(c *cluster, text string) []Parent {
	c.silence = nil
	if text != "" {
		c.silence = &Detail{Message: text}
	}
	var changed []Parent
	for key, w := range c.words {
		changed = append(changed, b.update(c, key, &w)...)
	}
	return changed
}

// effective is what a deployment counts as, all things considered.
func (c *cluster) effective(w word) entry {
	if c.silence != nil {
		n := w.resources.Value().DesiredReady
		return entry{offline, unique.Make(fleet.ResourceCounts{DesiredReady: n, Unknown: n}), c.silence}
	}
	h, held := w.bundle.facts.Held[c.name]
	if !held || w.exists && w.state <= outOfSync {
		return w.entry
	}
	e := w.entry
	e.detail = &Detail{Message: cut(h.Why)}
	if w.exists {
		e.state = outOfSync
	}
	return e
}

// put counts a deployment, and tells whether that changed anything.
func (c *cluster) put(key string, w word) bool {
	e := c.effective(w)
	old, had := c.counter.entries[key]
	if had && old.equal(e) {
		return false
	}
	c.counter.set(key, e)
	w.bundle.counter.set(c.label, e)
	if had {
		c.count(w.repo, old, -1)
	}
	c.count(w.repo, e, 1)
	return true
}

// take stops counting a deployment.
func (c *cluster) take(key string, w word) {
	e := c.counter.entries[key]
	c.counter.Delete(key)
	w.bundle.counter.Delete(c.label)
	c.count(w.repo, e, -1)
	delete(c.words, key)
}

// count carries a deployment over into the groups and the GitRepo.
func (c *cluster) count(r *repo, e entry, sign int) {
	for _, g := range c.groups {
		g.tally.shift(e, sign)
	}
	if r == nil {
		return
	}
	s := lookUp(c.shares, r, func() *share { return &share{} })
	r.count(*s, -1)
	s.total += sign
	if e.state == ready {
		s.ready += sign
	}
	r.count(*s, 1)
	if s.total == 0 {
		delete(c.shares, r)
	}
}

// ready tells whether a group may count the cluster as ready.
func (c *cluster) ready() bool {
	return c.silence == nil && !c.unseen && c.counter.allReady()
}

// settle tells the groups if the cluster has become ready or ceased to be.
func (c *cluster) settle() {
	now := c.ready()
	if now == c.shownReady {
		return
	}
	c.shownReady = now
	for _, g := range c.groups {
		g.mark(c, now)
	}
}

func (c *cluster) parents() []Parent {
	all := []Parent{{KindCluster, c.name}}
	for _, g := range c.groups {
		all = append(all, Parent{KindClusterGroup, g.name})
	}
	return all
}

func (c *cluster) parentsOf(w word) []Parent {
	all := append(c.parents(), Parent{KindBundle, w.bundle.name})
	if w.repo != nil {
		all = append(all, w.repo.parent)
	}
	return all
}

// join puts the cluster into exactly these groups.
func (b *Board) join(c *cluster, names []types.NamespacedName) []Parent {
	var changed []Parent
	for _, g := range slices.Clone(c.groups) {
		if !slices.Contains(names, g.name) {
			g.leave(c)
			c.groups = slices.DeleteFunc(c.groups, func(x *group) bool { return x == g })
			changed = append(changed, Parent{KindClusterGroup, g.name})
			if g.clusters == 0 {
				delete(b.groups, g.name)
			}
		}
	}
	for _, name := range names {
		if g := b.group(name); !slices.Contains(c.groups, g) {
			g.enter(c)
			c.groups = append(c.groups, g)
			changed = append(changed, Parent{KindClusterGroup, name})
		}
	}
	return changed
}
