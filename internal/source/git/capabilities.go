package git

import (
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// Azure DevOps insists on multi_ack, which go-git leaves out by default since
// it cannot negotiate in several rounds. We always say all that we have in one
// request, to which the answers are the same as without it but for a word at
// the end of each line, which go-git reads over. What stays out are thin packs:
// a pack must be complete by itself to be stored.
func init() { //nolint:gochecknoinits // go-git knows no other way, and this package is its only door
	transport.UnsupportedCapabilities = []capability.Capability{capability.ThinPack}
}
