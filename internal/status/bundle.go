package status

import (
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// BundleFacts are what a roll-up needs to know of a bundle beside its
// deployments.
type BundleFacts struct {
	// Source is the GitRepo or HelmOp that the bundle comes from, if any.
	Source Parent
	// Error of the bundle as a whole, such as one of targeting; it is what
	// bundle and GitRepo show.
	Error string
	// Held are clusters that do not get the newest content yet, and why. One
	// without a deployment is Pending, one with is OutOfSync.
	Held map[types.NamespacedName]HeldBack
}

// HeldBack says why a cluster does not get the newest content.
type HeldBack struct {
	// Namespace of the cluster's deployments.
	Namespace string
	// Why, for people.
	Why string
}

// bundle is what a board knows of a bundle.
type bundle struct {
	name    types.NamespacedName
	counter *Counter
	facts   BundleFacts
	// repo lists the bundle.
	repo *repo
	// known tells that the bundle itself was seen.
	known bool
}

// SetBundle takes in a bundle as it is now.
func (b *Board) SetBundle(name types.NamespacedName, facts BundleFacts) []Parent {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.learn(b.bundle(name), facts)
}

// learn takes in new facts and shows on each cluster what they change.
func (b *Board) learn(u *bundle, facts BundleFacts) []Parent {
	u.known = true
	before := u.repo
	changed := b.adopt(u, b.repo(facts.Source))
	if u.facts.Error != facts.Error {
		changed = append(changed, u.parents()...)
	}
	old := u.facts.Held
	u.facts = facts
	for c := range old {
		if _, still := facts.Held[c]; !still {
			changed = append(changed, b.release(u, c)...)
		}
	}
	for c, h := range facts.Held {
		if was, ok := old[c]; !ok || was != h {
			changed = append(changed, b.hold(u, c, h)...)
		}
	}
	b.tidyRepo(before)
	return uniqueParents(changed)
}

// DeleteBundle forgets a bundle; its deployments count until they go.
func (b *Board) DeleteBundle(name types.NamespacedName) []Parent {
	b.mu.Lock()
	defer b.mu.Unlock()
	u := b.bundle(name)
	changed := b.learn(u, BundleFacts{Source: u.facts.Source})
	u.known = false
	b.tidyBundle(u)
	return changed
}

// adopt lists the bundle with another GitRepo or HelmOp.
func (b *Board) adopt(u *bundle, r *repo) []Parent {
	if u.repo == r {
		return nil
	}
	changed := u.parents()
	if u.repo != nil {
		delete(u.repo.bundles, u.name)
	}
	if u.repo = r; r != nil {
		r.bundles[u.name] = u
	}
	return append(changed, u.parents()...)
}

// hold shows on one cluster that it is held back.
func (b *Board) hold(u *bundle, name types.NamespacedName, h HeldBack) []Parent {
	c := b.cluster(name)
	w, ok := c.words[u.name.Name]
	if !ok {
		b.spaces[h.Namespace], c.space = c, h.Namespace
		w = word{bundle: u, repo: u.repo, entry: entryOf(Contribution{State: fleet.Pending})}
	}
	return b.update(c, u.name.Name, &w)
}

// release takes that back; a place without a deployment goes with it.
func (b *Board) release(u *bundle, name types.NamespacedName) []Parent {
	c, ok := b.clusters[name]
	if !ok {
		return nil
	}
	w, ok := c.words[u.name.Name]
	if !ok || w.bundle != u {
		return nil
	}
	if !w.exists {
		return b.update(c, u.name.Name, nil)
	}
	return b.update(c, u.name.Name, &w)
}

func (u *bundle) parents() []Parent {
	all := []Parent{{KindBundle, u.name}}
	if u.repo != nil {
		all = append(all, u.repo.parent)
	}
	return all
}
