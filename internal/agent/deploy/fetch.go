package deploy

import (
	"github.com/flotilla-sh/flotilla/internal/cache"
	"github.com/flotilla-sh/flotilla/internal/content"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// sourceRoom is the memory for compressed parts of the sources that are rendered
// here. The next source of a bundle has most of the last one.
const sourceRoom = 8 << 20

// sourceParts are the parts of sources that were fetched last.
type sourceParts struct{ recent *cache.LRU[[]byte] }

func newSourceParts() sourceParts { return sourceParts{cache.New[[]byte](sourceRoom)} }

// Kept returns a part that was fetched before.
func (p sourceParts) Kept(ref content.Ref) ([]byte, bool) { return p.recent.Get(ref.ID()) }

// Take takes in a part.
func (p sourceParts) Take(ref content.Ref, data []byte) { p.recent.Put(ref.ID(), data, len(data)) }

// fetched is what was fetched of one content.
type fetched struct {
	root  string
	total fleet.FetchedContent
}

// count adds what a fetch took. The attempts at one content count as one.
func (c *Controller) count(name string, root content.Ref, took content.Fetched) {
	if took.Bytes == 0 {
		return
	}
	c.metrics.fetchedBytes.Add(float64(took.Bytes))
	c.metrics.fetchedPayloads.Add(float64(took.Payloads))
	c.update(name, func(j *job) {
		next := &fetched{root: root.Name, total: fleet.FetchedContent{Reused: took.Reused}}
		if j.fetched != nil && j.fetched.root == root.Name {
			next.total = j.fetched.total
		}
		next.total.Bytes += took.Bytes
		next.total.Payloads += took.Payloads
		j.fetched = next
	})
}
