package status

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// group is what a board knows of a cluster group.
type group struct {
	name     types.NamespacedName
	clusters int
	tally
	// nonReady are the clusters that are not ready, sorted.
	nonReady []*cluster
}

func (g *group) enter(c *cluster) {
	g.clusters++
	g.tally.merge(c.counter.tally)
	if !c.shownReady {
		g.mark(c, false)
	}
}

func (g *group) leave(c *cluster) {
	g.clusters--
	for _, e := range c.counter.entries {
		g.tally.remove(e)
	}
	if !c.shownReady {
		g.mark(c, true)
	}
}

// mark lists a cluster as not ready, or takes it off the list.
func (g *group) mark(c *cluster, ready bool) {
	at, found := slices.BinarySearchFunc(g.nonReady, c, func(a, b *cluster) int { return cmp.Compare(a.label, b.label) })
	switch {
	case found && ready:
		g.nonReady = slices.Delete(g.nonReady, at, at+1)
	case !found && !ready:
		g.nonReady = slices.Insert(g.nonReady, at, c)
	}
}
