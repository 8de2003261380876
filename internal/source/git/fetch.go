package git

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// fetching is the search for one commit.
type fetching struct {
	repo   *repository
	remote Remote
	want   plumbing.Hash
	// limit is how many bytes one transfer may bring; 0 is no bound.
	limit int64
	// small ends a transfer sooner, which may be tried again without; 0 for none.
	small int64
}

// obtain returns a store that has the commit, from disk or from the server.
// The ways to ask are tried from the cheapest to the surest.
func (f fetching) obtain(ctx context.Context) (*store, error) {
	if s := f.repo.current(); s != nil && s.has(f.want) {
		return s, nil
	}
	for _, way := range []func(context.Context) (*store, error){f.byName, f.byHash, f.everything} {
		s, err := way(ctx)
		if err != nil || s != nil {
			return s, err
		}
	}
	return nil, wait(retryMissing, ReasonCommitNotFound,
		"commit %s is in no branch or tag of %s; it may have been removed by a force-push", f.want, f.remote.place())
}

// byName asks for a ref that stands at the commit. A clone that fails with
// this, the most ordinary of requests, is replaced.
func (f fetching) byName(ctx context.Context) (*store, error) {
	s, err := f.inCurrent(ctx, f.named)
	if !broken(err) {
		return s, err
	}
	f.repo.distrust()
	return f.inNew(ctx, f.named)
}

// byHash asks for the commit itself, where the server allows that. Why it
// refused does not matter: everything finds the commit, or tells what is wrong.
func (f fetching) byHash(ctx context.Context) (*store, error) {
	s, err := f.inCurrent(ctx, f.exact)
	if broken(err) {
		return nil, nil
	}
	return s, err
}

// everything gets all branches and tags with their history. A clone that has
// once got so far only gets what is new.
func (f fetching) everything(ctx context.Context) (*store, error) {
	if s := f.repo.current(); s != nil && s.whole() {
		return f.inCurrent(ctx, f.all)
	}
	return f.inNew(ctx, f.all)
}

// ask is what to ask a server for; without wants, nothing is asked.
type ask struct {
	wants []plumbing.Hash
	depth int
	// names are what the store follows once the pack is there.
	names []string
}

// choose decides on what to ask for.
type choose func(*store, *packp.AdvRefs) ask

// named asks for the ref at the commit. Where the store follows it already, the
// server sends what came since, and where the branch has moved on meanwhile,
// the commit comes along with its successors.
func (f fetching) named(s *store, refs *packp.AdvRefs) ask {
	own := f.remote.target().branch.String()
	name := refAt(refs, f.want, own)
	if name == "" && s.follows(own) {
		name = own
	}
	tip, ok := refs.References[name]
	if !ok {
		return ask{}
	}
	a := ask{wants: []plumbing.Hash{tip}, names: []string{name}}
	if !s.follows(name) {
		a.depth = 1
	}
	return a
}

// refAt finds a ref that stands at the commit, the preferred one if it does.
func refAt(refs *packp.AdvRefs, commit plumbing.Hash, preferred string) string {
	if refs.References[preferred] == commit {
		return preferred
	}
	for _, name := range slices.Sorted(maps.Keys(refs.References)) {
		if refs.References[name] == commit || refs.Peeled[name] == commit {
			return name
		}
	}
	return ""
}

func (f fetching) exact(_ *store, refs *packp.AdvRefs) ask {
	can := refs.Capabilities.Supports
	if !can(capability.AllowReachableSHA1InWant) && !can(capability.AllowTipSHA1InWant) {
		return ask{}
	}
	return ask{wants: []plumbing.Hash{f.want}, depth: 1, names: []string{f.want.String()}}
}

func (f fetching) all(s *store, refs *packp.AdvRefs) ask {
	var a ask
	for _, name := range slices.Sorted(maps.Keys(refs.References)) {
		if strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/") {
			a.names = append(a.names, name)
			a.wants = append(a.wants, refs.References[name])
		}
	}
	plumbing.HashesSort(a.wants)
	a.wants = s.missing(slices.Compact(a.wants))
	return a
}

// inCurrent fetches into the current clone, or into a new one where there is
// none to add to.
func (f fetching) inCurrent(ctx context.Context, what choose) (*store, error) {
	s := f.repo.current()
	if s == nil || s.crowded(f.repo.maxPacks) {
		return f.inNew(ctx, what)
	}
	if _, err := f.transfer(ctx, s, what); err != nil {
		return nil, err
	}
	return f.found(s.dir)
}

func (f fetching) inNew(ctx context.Context, what choose) (*store, error) {
	draft, err := f.repo.draft()
	if err != nil {
		return nil, err
	}
	asked, err := f.transfer(ctx, draft, what)
	if err != nil || !asked {
		_ = os.RemoveAll(draft.dir)
		return nil, err
	}
	dir, err := f.repo.publish(draft)
	if err != nil {
		return nil, err
	}
	return f.found(dir)
}

// found opens the store anew, since an open one does not see new packs, and
// returns it if it has the commit.
func (f fetching) found(dir string) (*store, error) {
	s, err := openStore(dir)
	if err != nil || !s.has(f.want) {
		return nil, err
	}
	return s, nil
}

// transfer asks and stores the answer; asked is false where there was nothing
// to ask for.
func (f fetching) transfer(ctx context.Context, s *store, what choose) (asked bool, err error) {
	conn, refs, err := connect(ctx, f.remote)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }()
	a := what(s, refs)
	if len(a.wants) == 0 {
		return false, nil
	}
	s.limit = f.limit
	if f.small > 0 {
		s.limit = f.small
	}
	f.repo.moved.Store(true)
	if err := s.pull(ctx, conn, refs, a); err != nil {
		return false, f.failed(ctx, err)
	}
	return true, nil
}

// transferError is a failure after the server had shown its refs: of the pack,
// of what the server made of our request, or of our disk.
type transferError struct{ error }

// Unwrap returns the cause.
func (e *transferError) Unwrap() error { return e.error }

func broken(err error) bool {
	_, ok := err.(*transferError) //nolint:errorlint // made by failed, and not wrapped on the way
	return ok
}

func (f fetching) failed(ctx context.Context, err error) error {
	if over, ok := errors.AsType[*inflated](err); ok {
		return wait(retryTooLarge, ReasonTooLarge, "the repository %s cannot be taken: %w", f.remote.place(), over)
	}
	if errors.Is(err, errTooLarge) && f.small > 0 {
		return errSmall
	}
	if errors.Is(err, errTooLarge) {
		return f.tooLarge()
	}
	if ctx.Err() != nil {
		return explain(ctx, f.remote, err)
	}
	if full := diskFull(f.remote, err); full != nil {
		return &transferError{full}
	}
	return &transferError{transient(fmt.Errorf("cannot fetch %s: %s; it will be tried again",
		f.remote.place(), f.remote.redact(cause(err).Error())))}
}
