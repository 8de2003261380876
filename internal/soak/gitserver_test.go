package soak_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"testing/fstest"
	"time"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/source/git"
)

// gitServer has the repositories of a world, in memory. What go-git makes of a
// real server is tested with it.
type gitServer struct {
	seed uint64
	// slow is how long an answer takes at most.
	slow  time.Duration
	trace func(format string, args ...any)

	mu sync.Mutex
	// faulty lets answers be late, and fail.
	faulty bool
	repos  map[string]*gitRepo
	asked  map[string]int
}

// gitRepo is one repository, by its URL.
type gitRepo struct {
	head string
	// commits are those that can be fetched.
	commits map[string]fstest.MapFS
	away    bool
}

func newGitServer(seed uint64, slow time.Duration, trace func(format string, args ...any)) *gitServer {
	return &gitServer{seed: seed, slow: slow, trace: trace, repos: map[string]*gitRepo{}, asked: map[string]int{}}
}

// push makes a commit the newest of a repository. Forced, it is the only one.
func (s *gitServer) push(url, commit string, files fstest.MapFS, force bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.repos[url]
	if r == nil {
		r = &gitRepo{commits: map[string]fstest.MapFS{}}
		s.repos[url] = r
	}
	if force {
		clear(r.commits)
	}
	r.head, r.commits[commit] = commit, files
}

// away takes a repository out of reach, and brings it back.
func (s *gitServer) away(url string, away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repos[url].away = away
}

// faults lets answers be late and fail, or ends that.
func (s *gitServer) faults(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faulty = on
}

var errGit = errors.New("the Git server does not answer")

// look returns what a repository is when somebody asks, and lets the answer take
// its time.
func (s *gitServer) look(ctx context.Context, what, url string) (gitRepo, error) {
	r, fails, takes := s.now(what, url)
	select {
	case <-ctx.Done():
		return r, ctx.Err()
	case <-time.After(takes):
	}
	if r.away || fails {
		return r, errGit
	}
	return r, nil
}

func (s *gitServer) now(what, url string) (r gitRepo, fails bool, takes time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.repos[url]; known != nil {
		r = *known
	}
	s.asked[what+url]++
	if !s.faulty {
		return r, false, 0
	}
	h := fnv.New64a()
	fmt.Fprint(h, what, url, s.asked[what+url])
	by := rand.New(rand.NewPCG(s.seed, h.Sum64()))
	if by.IntN(4) == 0 {
		takes = time.Duration(by.Int64N(int64(s.slow)))
	}
	if fails = by.IntN(5) == 0; fails {
		s.trace("fault: git: %s %s fails", what, url)
	}
	return r, fails, takes
}

// Resolve returns the newest commit, as it was when it was asked for.
func (s *gitServer) Resolve(ctx context.Context, r git.Remote) (string, error) {
	repo, err := s.look(ctx, "resolve", r.URL)
	if err != nil {
		return "", err
	}
	if repo.head == "" {
		return "", fault.Wait(time.Minute, git.ReasonBranchNotFound, fmt.Errorf("%s has no commits", r.URL))
	}
	return repo.head, nil
}

// Read gives the files of a commit, which may be gone, to a reader.
func (s *gitServer) Read(ctx context.Context, r git.Remote, commit string, read func(source.Tree)) error {
	if _, err := s.look(ctx, "fetch", r.URL); err != nil {
		return err
	}
	files, ok := s.files(r.URL, commit)
	if !ok {
		return fault.Wait(time.Minute, git.ReasonCommitNotFound, fmt.Errorf("%s is in no branch of %s", commit, r.URL))
	}
	read(source.Tree{Commit: commit, FS: files})
	return nil
}

func (s *gitServer) files(url, commit string) (fstest.MapFS, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	files, ok := s.repos[url].commits[commit]
	return files, ok
}
