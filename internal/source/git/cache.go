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
	return &Cache{dir: dir, maxPacks: defaultMaxPacks, repos: map[string]*repository{}}, nil
}

// Bound sets how many bytes the cache may hold, for what is fetched from now on.
// The repositories used least recently go first; those in use stay.
func (c *Cache) Bound(bytes int64) error {
	c.limit = bytes
	return c.sweep()
}

// Fetch returns the tree of a commit that Resolve gave for the remote. What the
// cache has is not fetched again; of a branch that is followed, only what
// changed is moved.
func (c *Cache) Fetch(ctx context.Context, r Remote, commit string) (source.Tree, error) {
	if _, err := r.endpoint(); err != nil {
		return source.Tree{}, err
	}
	if !isCommit(commit) {
		return source.Tree{}, fault.Stall(ReasonCommitNotFound, fmt.Errorf("%q is not a full commit hash", commit))
	}
	repo := c.repository(r.repositoryID())
	tree, err := c.fetch(ctx, repo, r, plumbing.NewHash(strings.ToLower(commit)))
	if repo.moved.Swap(false) {
		if sweepErr := c.sweep(); err == nil {
			err = sweepErr
		}
	}
	return tree, err
}

func (c *Cache) fetch(ctx context.Context, repo *repository, r Remote, want plumbing.Hash) (source.Tree, error) {
	unlock, err := repo.lock(ctx)
	if err != nil {
		return source.Tree{}, err
	}
	defer unlock()
	s, err := repo.obtain(ctx, r, want)
	if err != nil {
		return source.Tree{}, err
	}
	if err := r.Keys.check(s, r, want); err != nil {
		return source.Tree{}, err
	}
	files, err := newTree(s, want, repo.distrust)
	if err != nil {
		return source.Tree{}, fmt.Errorf("cannot read commit %s of %s from the Git cache: %w", want, r.place(), err)
	}
	repo.touch(files)
	return source.Tree{Commit: want.String(), FS: files}, nil
}

func (c *Cache) repository(id string) *repository {
	c.mu.Lock()
	defer c.mu.Unlock()
	repo, ok := c.repos[id]
	if !ok {
		repo = &repository{dir: filepath.Join(c.dir, id), maxPacks: c.maxPacks, limit: c.limit, turn: make(chan struct{}, 1)}
		c.repos[id] = repo
	}
	return repo
}
