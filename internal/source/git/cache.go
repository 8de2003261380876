package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source"
)

// defaultMaxPacks is how many packs a clone may collect, one for each fetch,
// before looking things up in it costs more than a new clone.
const defaultMaxPacks = 100

// Cache keeps repositories on disk. Each distinct URL, credential and TLS
// setting has its own, so nobody can read what only another's credential
// opens. Several processes may use one directory.
type Cache struct {
	dir      string
	maxPacks int
	// limit is how many bytes stay on disk; 0 is no bound.
	limit int64
	// small is what a transfer may bring without the turn of large ones; 0 where
	// none has to wait.
	small int64
	large chan struct{}

	sweeping sync.Mutex

	mu    sync.Mutex
	repos map[string]*repository
	usage Usage
}

// NewCache opens the cache in dir, which is created where it does not exist.
func NewCache(dir string) (*Cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot use %s as the Git cache: %w", dir, err)
	}
	return &Cache{dir: dir, maxPacks: defaultMaxPacks, repos: map[string]*repository{}, large: make(chan struct{}, 1)}, nil
}

// Bound sets how many bytes the cache may hold, for what is fetched from now on.
// The repositories used least recently go first; those in use stay. While a
// repository is fetched the disk may need as much again.
func (c *Cache) Bound(bytes int64) error {
	c.limit, c.small = bytes, SmallFetch
	return c.sweep()
}

// Fetch returns the tree of a commit that Resolve gave for the remote. What the
// cache has is not fetched again; of a branch that is followed, only what
// changed is moved. Submodules are empty directories; see Read.
func (c *Cache) Fetch(ctx context.Context, r Remote, commit string) (source.Tree, error) {
	files, err := c.fetch(ctx, r, commit)
	if err != nil {
		return source.Tree{}, err
	}
	return source.Tree{Commit: files.commit.String(), FS: files}, nil
}

func (c *Cache) fetch(ctx context.Context, r Remote, commit string) (*tree, error) {
	if _, err := r.endpoint(); err != nil {
		return nil, err
	}
	if !isCommit(commit) {
		return nil, fault.Stall(ReasonCommitNotFound, fmt.Errorf("%q is not a full commit hash", commit))
	}
	return c.fetchWithin(ctx, r, plumbing.NewHash(strings.ToLower(commit)), c.limit)
}

// open fetches what is missing and shows a commit as a tree.
func (r *repository) open(ctx context.Context, f fetching) (*tree, error) {
	unlock, err := r.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s, err := f.obtain(ctx)
	if err != nil {
		return nil, err
	}
	if err := f.verify(ctx, s); err != nil {
		return nil, err
	}
	files, err := newTree(s, f.want, r.distrust)
	if err != nil {
		return nil, fmt.Errorf("cannot read commit %s of %s from the Git cache: %w", f.want, f.remote.place(), err)
	}
	files.remote = f.remote
	r.touch(files)
	return files, nil
}

func (c *Cache) repository(id string) *repository {
	c.mu.Lock()
	defer c.mu.Unlock()
	repo, ok := c.repos[id]
	if !ok {
		repo = &repository{dir: filepath.Join(c.dir, id), maxPacks: c.maxPacks, turn: make(chan struct{}, 1)}
		c.repos[id] = repo
	}
	return repo
}
