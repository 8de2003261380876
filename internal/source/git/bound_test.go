package git_test

import (
	"io/fs"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source/git"
	"github.com/flotilla-sh/flotilla/internal/source/git/gittest"
)

func TestCacheStaysWithinItsBound(t *testing.T) {
	server := gittest.Serve(t)
	remote := func(name string) git.Remote { return git.Remote{URL: server.URL + "/" + name, Branch: "main"} }
	names := []string{"a", "b", "c", "d"}
	for _, name := range names {
		gittest.NewRepo(t, server.Root, name).Push("big", noise(100_000))
	}
	dir := t.TempDir()
	c := cacheIn(t, dir)
	if err := c.Bound(250_000); err != nil {
		t.Fatal(err)
	}
	first := sync(t, c, remote("a"))
	sync(t, c, remote("b"))
	sync(t, c, remote("c"))
	sync(t, c, remote("d"))
	wantFile(t, first, "big", noise(100_000)) // in use, however long ago it was fetched
	runtime.KeepAlive(first)
	first.FS = nil
	for range 3 { // nobody reads any of them from here on
		runtime.GC()
		sync(t, c, remote("c"))
	}
	gittest.NewRepo(t, server.Root, "e").Push("big", noise(100_000))
	sync(t, c, remote("e"))
	if u := c.Usage(); u.Bytes > 250_000 || u.Repositories > 2 || u.Evicted < 3 {
		t.Errorf("usage is %+v, want two repositories in 250,000 bytes", u)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 2 {
		t.Errorf("%d directories, %v; want two", len(left), err)
	}
	before := server.Requests()
	sync(t, c, remote("c")) // used lately: one question, no fetch
	if n := server.Requests() - before; n != 1 {
		t.Errorf("%d requests for what was used lately, want 1", n)
	}
	wantFile(t, sync(t, c, remote("a")), "big", noise(100_000)) // gone, and cloned again
	again := cacheIn(t, dir)
	if err := again.Bound(1); err != nil {
		t.Fatal(err)
	}
	if u := again.Usage(); u.Repositories != 0 || u.Bytes != 0 {
		t.Errorf("usage is %+v after a start with another bound, want none", u)
	}
}

func TestRepositoryBeyondTheBound(t *testing.T) {
	s := newSite(t)
	c := newCache(t)
	if err := c.Bound(100_000); err != nil {
		t.Fatal(err)
	}
	wantFile(t, sync(t, c, s.remote()), "app/cm.yaml", "v: 1\n")
	commit := s.Push("big", noise(1_000_000))
	_, err := c.Fetch(t.Context(), s.remote(), commit)
	(complaint{fault.Waiting, "RepositoryTooLarge", []string{"more than 100000 bytes", "--git-cache-size"}}).check(t, err)
	if sent := s.server.Sent(); sent > 900_000 {
		t.Errorf("%d bytes were taken", sent)
	}
	wantFile(t, fetch(t, c, s.remote(), s.first), "app/cm.yaml", "v: 1\n")
}

func TestLargeFile(t *testing.T) {
	s := newSite(t)
	s.Push("big", strings.Repeat("x", 65<<20))
	tree := sync(t, newCache(t), s.remote())
	wantFile(t, tree, "app/cm.yaml", "v: 1\n")
	_, err := fs.ReadFile(tree.FS, "big")
	(complaint{fault.Stalled, "RepositoryTooLarge", []string{"68157440 bytes", ".fleetignore"}}).check(t, err)
}
