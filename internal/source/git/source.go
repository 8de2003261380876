package git

import (
	"context"

	"github.com/flotilla-sh/flotilla/internal/source"
)

// Source answers for repositories.
type Source interface {
	// Resolve returns the commit that the remote's revision or branch stands for.
	Resolve(ctx context.Context, r Remote) (string, error)
	// Read gives the tree of a commit that Resolve gave for the remote to a
	// reader, as often as it lacks something that the reader looks for.
	Read(ctx context.Context, r Remote, commit string, read func(source.Tree)) error
}

// Resolve asks the remote's server, see the function of this name; nothing of
// what it answers is kept.
func (c *Cache) Resolve(ctx context.Context, r Remote) (string, error) { return Resolve(ctx, r) }
