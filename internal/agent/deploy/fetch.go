package deploy

import (
	"github.com/flotilla-sh/flotilla/internal/content"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

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
