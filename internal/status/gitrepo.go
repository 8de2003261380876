package status

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// repo is what a board knows of a GitRepo or HelmOp.
type repo struct {
	parent Parent
	// bundles that come from it.
	bundles map[types.NamespacedName]*bundle
	// clusters that it deploys to, and those of them on which all of its
	// deployments are ready.
	clusters, readyClusters int
}

// count adds or takes away one cluster's share.
func (r *repo) count(s share, sign int) {
	if s.total == 0 {
		return
	}
	r.clusters += sign
	if s.ready == s.total {
		r.readyClusters += sign
	}
}

// sorted lists the bundles by name, so that messages do not change their
// subject from one write to the next.
func (r *repo) sorted() []*bundle {
	return slices.SortedFunc(maps.Values(r.bundles), func(a, b *bundle) int { return cmp.Compare(a.name.Name, b.name.Name) })
}
