package git_test

import (
	"context"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	stdsync "sync"
	"syscall"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source/git"
)

// noise does not compress, so that moved bytes can be counted.
func noise(n int) string {
	b := make([]byte, n)
	rand.New(rand.NewSource(int64(n))).Read(b)
	return string(b)
}

func TestFetchMovesOnlyWhatChanged(t *testing.T) {
	s := newSite(t)
	s.Push("big", noise(300_000))
	c := newCache(t)
	sync(t, c, s.remote())
	for _, content := range []string{"v: 2\n", "v: 3\n"} {
		before := s.server.Sent()
		s.Push("app/cm.yaml", content)
		tree := sync(t, c, s.remote())
		wantFile(t, tree, "app/cm.yaml", content)
		wantFile(t, tree, "big", noise(300_000))
		if moved := s.server.Sent() - before; moved > 5_000 {
			t.Errorf("a one-line change moved %d bytes", moved)
		}
	}
}

func TestFetchAsksNothingForWhatIsThere(t *testing.T) {
	s := newSite(t)
	dir := t.TempDir()
	fetch(t, cacheIn(t, dir), s.remote(), s.first)
	before := s.server.Requests()
	wantFile(t, fetch(t, cacheIn(t, dir), s.remote(), s.first), "app/cm.yaml", "v: 1\n")
	if n := s.server.Requests() - before; n != 0 {
		t.Errorf("%d requests for a commit that the disk has", n)
	}
}

// Azure DevOps knows multi_ack alone and insists on it; others know more.
func TestServersThatInsist(t *testing.T) {
	for _, insist := range []string{"multi_ack", "multi_ack_detailed"} {
		t.Run(insist, func(t *testing.T) {
			s := newSite(t)
			s.server.Insist = insist
			if insist == "multi_ack" {
				s.server.Hide = "multi_ack_detailed"
			}
			s.Push("big", noise(300_000))
			c := newCache(t)
			wantFile(t, sync(t, c, s.remote()), "app/cm.yaml", "v: 1\n")
			other := s.remote()
			for _, branch := range []string{"one", "two", "three"} {
				s.Git("checkout", "--quiet", "-b", branch)
				other.Branch = branch
				s.Push("app/cm.yaml", "v: 0\n")
				sync(t, c, other)
				for _, content := range []string{"v: 2\n", "v: 3\n", branch} {
					s.Push("app/cm.yaml", content)
					before := s.server.Sent()
					wantFile(t, sync(t, c, other), "app/cm.yaml", content)
					if moved := s.server.Sent() - before; moved > 5_000 {
						t.Errorf("%s: a one-line change moved %d bytes", branch, moved)
					}
				}
			}
			s.Git("checkout", "--quiet", "main")
			s.Git("reset", "--quiet", "--hard", s.first)
			s.Write("app/cm.yaml", "v: other\n")
			s.Commit("another way")
			s.Git("push", "--quiet", "--force", "origin", "HEAD")
			wantFile(t, sync(t, c, s.remote()), "app/cm.yaml", "v: other\n")
		})
	}
}

// The first fetch is shallow; a later commit that brings back files of an
// ancestor that never came must bring them along, also from servers that
// reckon exactly what a client must have (bitmaps).
func TestFetchGetsWhatARevertBringsBack(t *testing.T) {
	s := newSite(t)
	s.Configure("repack.writeBitmaps", "true")
	s.Push("app/cm.yaml", "v: 2\n")
	c := newCache(t)
	sync(t, c, s.remote())
	s.Git("revert", "--no-edit", "HEAD")
	s.Push("other", "so that the root is not the old one")
	s.Git("--git-dir", s.Bare, "repack", "-adbq")
	wantFile(t, sync(t, c, s.remote()), "app/cm.yaml", "v: 1\n")
}

func TestFetchFollowsForcePushes(t *testing.T) {
	s := newSite(t)
	c := newCache(t)
	old := s.Push("app/cm.yaml", "v: 2\n")
	before := sync(t, c, s.remote())
	s.Git("reset", "--quiet", "--hard", s.first)
	s.Write("app/cm.yaml", "v: other\n")
	s.Commit("another way")
	s.Git("push", "--quiet", "--force", "origin", "HEAD")
	wantFile(t, sync(t, c, s.remote()), "app/cm.yaml", "v: other\n")
	wantFile(t, before, "app/cm.yaml", "v: 2\n")
	wantFile(t, fetch(t, c, s.remote(), old), "app/cm.yaml", "v: 2\n")
}

func TestFetchFindsCommits(t *testing.T) {
	for name, test := range map[string]struct {
		byHash string
		branch string
		warm   bool
	}{
		"server refuses hashes":             {byHash: "false"},
		"server serves hashes":              {byHash: "true"},
		"with a branch":                     {byHash: "false", branch: "main"},
		"older than what the cache follows": {byHash: "false", branch: "main", warm: true},
		"the same, by hash":                 {byHash: "true", branch: "main", warm: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.Configure("uploadpack.allowReachableSHA1InWant", test.byHash)
			s.Push("app/cm.yaml", "v: 2\n")
			s.Push("app/cm.yaml", "v: 3\n")
			c := newCache(t)
			if test.warm {
				sync(t, c, s.remote())
			}
			r := s.remote()
			r.Branch, r.Revision = test.branch, s.first
			wantFile(t, sync(t, c, r), "app/cm.yaml", "v: 1\n")
			wantFile(t, sync(t, c, s.remote()), "app/cm.yaml", "v: 3\n")
		})
	}
}

func TestFetchOfTags(t *testing.T) {
	s := newSite(t)
	s.Git("tag", "--annotate", "v1", "--message", "one")
	s.Git("push", "--quiet", "--tags", "origin")
	s.Push("app/cm.yaml", "v: 2\n")
	r := s.remote()
	r.Revision = "v1"
	wantFile(t, sync(t, newCache(t), r), "app/cm.yaml", "v: 1\n")
}

// Between resolving and fetching somebody may push.
func TestFetchWhenTheBranchHasMovedOn(t *testing.T) {
	s := newSite(t)
	c := newCache(t)
	sync(t, c, s.remote())
	resolved := s.Push("app/cm.yaml", "v: 2\n")
	s.Push("app/cm.yaml", "v: 3\n")
	wantFile(t, fetch(t, c, s.remote(), resolved), "app/cm.yaml", "v: 2\n")
	wantFile(t, fetch(t, newCache(t), s.remote(), resolved), "app/cm.yaml", "v: 2\n")
}

func TestFetchComplains(t *testing.T) {
	s := newSite(t)
	c := newCache(t)
	missing := complaint{fault.Waiting, "CommitNotFound", []string{"is in no branch or tag", "force-push"}}
	absent := strings.Repeat("ab", 20)
	_, err := c.Fetch(t.Context(), s.remote(), absent)
	missing.check(t, err)

	before := s.server.Sent()
	s.Push("app/cm.yaml", "v: 2\n")
	_, err = c.Fetch(t.Context(), s.remote(), absent)
	missing.check(t, err)
	if moved := s.server.Sent() - before; moved > 5_000 {
		t.Errorf("looking again for a commit that is not there moved %d bytes", moved)
	}

	_, err = c.Fetch(t.Context(), s.remote(), "main")
	complaint{fault.Stalled, "CommitNotFound", []string{`"main" is not a full commit hash`}}.check(t, err)

	s.server.Close()
	_, err = newCache(t).Fetch(t.Context(), s.remote(), s.first)
	complaint{fault.Transient, "GitUnreachable", []string{"connection refused"}}.check(t, err)
}

// A full disk is no fault of the network, and two attempts say the same.
func TestFullDiskOfTheCache(t *testing.T) {
	remote := git.Remote{URL: "https://me:secret@example.com/a.git"}
	full := func(file string) error {
		return plumbing.NewUnexpectedError(&os.PathError{Op: "write", Path: file, Err: syscall.ENOSPC})
	}
	for name, said := range map[string]func(context.Context, git.Remote, error) error{"before": git.Explain, "in the middle": git.FailedFetch} {
		err := said(t.Context(), remote, full("new-1"))
		complaint{fault.Transient, "CacheDiskFull", []string{"the disk of the hub's cache is full", "https://example.com/a.git", "--cache-dir"}}.check(t, err)
		if again := said(t.Context(), remote, full("new-2")); again.Error() != err.Error() {
			t.Errorf("%s a fetch, the second attempt says %v", name, again)
		}
	}
}

// What one credential opened must not be read through another, not even when
// the commit's hash is known.
func TestCredentialsNeverShare(t *testing.T) {
	s := newSite(t)
	s.server.Logins["alice"] = secret
	c := newCache(t)
	r := s.remote()
	r.Credentials = basic("alice", secret)
	fetch(t, c, r, s.first)
	for _, other := range []git.Credentials{{}, basic("alice", "guess"), basic("bob", secret)} {
		r.Credentials = other
		if tree, err := c.Fetch(t.Context(), r, s.first); err == nil {
			t.Errorf("%v got the tree of commit %s", other, tree.Commit)
		}
	}
}

func TestIdentity(t *testing.T) {
	base := git.Remote{URL: "https://example.com/x.git", Branch: "main", Credentials: basic("u", "p")}
	seen := map[string]string{git.Identity(base): "base"}
	for name, change := range map[string]func(*git.Remote){
		"url":         func(r *git.Remote) { r.URL += "x" },
		"branch":      func(r *git.Remote) { r.Branch = "dev" },
		"tag":         func(r *git.Remote) { r.Revision = "main" },
		"user":        func(r *git.Remote) { r.Credentials.Username = "up"; r.Credentials.Password = "" },
		"password":    func(r *git.Remote) { r.Credentials.Password = "q" },
		"key":         func(r *git.Remote) { r.Credentials.PrivateKey = []byte("k") },
		"known hosts": func(r *git.Remote) { r.Credentials.KnownHosts = []byte("k") },
		"CA":          func(r *git.Remote) { r.TLS.CABundle = []byte("k") },
		"insecure":    func(r *git.Remote) { r.TLS.InsecureSkipTLSVerify = true },
	} {
		r := base
		change(&r)
		if other, ok := seen[git.Identity(r)]; ok {
			t.Errorf("%s has the identity of %s", name, other)
		}
		seen[git.Identity(r)] = name
	}
	a, b := git.Remote{URL: base.URL}, git.Remote{URL: base.URL, Branch: "master"}
	if git.Identity(a) != git.Identity(b) {
		t.Error("no branch and the default branch are polled apart")
	}
}

func TestDamagedCacheIsClonedAgain(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, pack string){
		"pack cut short": func(t *testing.T, pack string) { truncate(t, pack, 40) },
		"pack gone":      func(t *testing.T, pack string) { remove(t, pack) },
		"index gone":     func(t *testing.T, pack string) { remove(t, strings.TrimSuffix(pack, "pack")+"idx") },
		"index garbled":  func(t *testing.T, pack string) { truncate(t, strings.TrimSuffix(pack, "pack")+"idx", 100) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			dir := t.TempDir()
			fetch(t, cacheIn(t, dir), s.remote(), s.first)
			packs, _ := filepath.Glob(filepath.Join(dir, "*", "*", "objects", "pack", "*.pack"))
			if len(packs) != 1 {
				t.Fatalf("packs: %v", packs)
			}
			damage(t, packs[0])
			second := s.Push("app/cm.yaml", "v: 2\n")
			c := cacheIn(t, dir)
			wantFile(t, fetch(t, c, s.remote(), second), "app/cm.yaml", "v: 2\n")
			wantFile(t, fetch(t, c, s.remote(), s.first), "app/cm.yaml", "v: 1\n")
		})
	}
}

// Damage below the root shows when the file is read; the next fetch mends it.
func TestDamageFoundByAReader(t *testing.T) {
	s := newSite(t)
	s.Push("big", noise(300_000))
	dir := t.TempDir()
	c := cacheIn(t, dir)
	tree := sync(t, c, s.remote())
	packs, _ := filepath.Glob(filepath.Join(dir, "*", "*", "objects", "pack", "*.pack"))
	zero(t, packs[0], 100_000)
	if _, err := fs.ReadFile(tree.FS, "big"); err == nil {
		t.Fatal("damage was not noticed")
	}
	wantFile(t, fetch(t, c, s.remote(), tree.Commit), "big", noise(300_000))
}

func TestFetchByManyAtOnce(t *testing.T) {
	s := newSite(t)
	dir := t.TempDir()
	caches := []*git.Cache{cacheIn(t, dir), cacheIn(t, dir)}
	var group stdsync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			tree, err := caches[i%2].Fetch(t.Context(), s.remote(), s.first)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := fs.ReadFile(tree.FS, "app/cm.yaml"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := s.server.Requests(); n != 2 {
		t.Errorf("%d requests for one clone, want 2", n)
	}
}

// A clone that fetches for ever does not grow for ever.
func TestManyFetchesStayBounded(t *testing.T) {
	s := newSite(t)
	dir := t.TempDir()
	c := cacheIn(t, dir)
	c.SetMaxPacks(5)
	for i := range 15 {
		wantFile(t, fetch(t, c, s.remote(), s.Push("app/cm.yaml", strings.Repeat("x", i))), "app/cm.yaml", strings.Repeat("x", i))
	}
	clones, _ := filepath.Glob(filepath.Join(dir, "*", "*.git"))
	packs, _ := filepath.Glob(filepath.Join(clones[len(clones)-1], "objects", "pack", "*.pack"))
	if len(clones) != 2 || len(packs) > 6 {
		t.Errorf("%d clones, the last of %d packs", len(clones), len(packs))
	}
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func zero(t *testing.T, path string, offset int64) {
	t.Helper()
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteAt(make([]byte, 1000), offset); err != nil {
		t.Fatal(err)
	}
}
