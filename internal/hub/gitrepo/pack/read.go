package pack

import (
	"context"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/source/git"
)

// smallBundles is how many bytes the files of a GitRepo may have that is packed
// beside others. One with more has its turn alone, since its files are all in
// memory at once.
const smallBundles = 16 << 20

// found is what a commit holds.
type found struct {
	tree   source.Tree
	drafts []bundle.Draft
	// err is of the scan, which can fail for one path and still have found
	// bundles at others.
	err error
	// done is to be called when the drafts are not needed any more.
	done func()
}

// read scans a commit, with the files of bundles up to so many bytes.
func (c *Controller) read(ctx context.Context, remote git.Remote, commit string, in bundle.Input) (found, error) {
	most := in.MaxBytes
	if most <= 0 || most > smallBundles {
		in.MaxBytes = smallBundles
	}
	got, err := c.scan(ctx, remote, commit, in)
	if err != nil || in.MaxBytes == most || !bundle.BeyondBound(got.drafts) {
		return got, err
	}
	got = found{} // what it holds is read again
	if err := c.alone.take(ctx); err != nil {
		return got, err
	}
	in.MaxBytes = most
	if got, err = c.scan(ctx, remote, commit, in); err != nil {
		c.alone.giveBack()
		return got, err
	}
	got.done = c.alone.giveBack
	return got, nil
}

func (c *Controller) scan(ctx context.Context, remote git.Remote, commit string, in bundle.Input) (found, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	got := found{done: func() {}}
	err := c.Git.Read(ctx, remote, commit, func(t source.Tree) {
		got.tree = t
		got.drafts, got.err = bundle.Scan(t, in)
	})
	return got, err
}

// turn is had by one at a time.
type turn chan struct{}

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) giveBack() { <-t }
