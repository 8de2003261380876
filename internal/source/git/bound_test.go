package git_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	gosync "sync"
	"sync/atomic"
	"testing"
	"time"

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

// Transfers that are not small come one after the other, and wait until the disk
// has room: never more than twice the bound, however many there are.
func TestManyLargeFetchesAtOnce(t *testing.T) {
	server := gittest.Serve(t)
	names := []string{"a", "b", "c", "d", "e", "f"}
	for _, name := range names {
		gittest.NewRepo(t, server.Root, name).Push("big", noise(200_000))
	}
	dir := t.TempDir()
	c := cacheIn(t, dir)
	const bound, small = 300_000, 20_000
	if err := c.Bound(bound); err != nil {
		t.Fatal(err)
	}
	c.SetSmall(small)
	seen, stop := largest(dir)
	var fetching gosync.WaitGroup
	for _, name := range names {
		fetching.Go(func() {
			tree := sync(t, c, git.Remote{URL: server.URL + "/" + name, Branch: "main"})
			wantFile(t, tree, "big", noise(200_000))
		})
	}
	fetching.Wait()
	stop()
	// Beside packs there are their indexes, and what small transfers began.
	if most := 2*bound + len(names)*2*small; int(seen.Load()) > most {
		t.Errorf("%d bytes were on the disk, want %d at most", seen.Load(), most)
	}
}

// largest watches how much a directory ever holds.
func largest(dir string) (seen *atomic.Int64, stop func()) {
	seen = &atomic.Int64{}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			total := int64(0)
			_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					if info, err := d.Info(); err == nil {
						total += info.Size()
					}
				}
				return nil
			})
			seen.Store(max(seen.Load(), total))
			select {
			case <-end:
				return
			default:
			}
		}
	}()
	return seen, func() { close(end); <-ended }
}

// A large transfer waits for clones in use, and goes on when they are free.
func TestLargeFetchWaitsForRoom(t *testing.T) {
	server := gittest.Serve(t)
	remote := func(name string) git.Remote { return git.Remote{URL: server.URL + "/" + name, Branch: "main"} }
	for _, name := range []string{"a", "b", "c"} {
		gittest.NewRepo(t, server.Root, name).Push("big", noise(200_000))
	}
	c := newCache(t)
	if err := c.Bound(250_000); err != nil {
		t.Fatal(err)
	}
	c.SetSmall(20_000)
	first := sync(t, c, remote("a"))
	second := sync(t, c, remote("b"))
	commit, err := git.Resolve(t.Context(), remote("c"))
	if err != nil {
		t.Fatal(err)
	}
	given, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = c.Fetch(given, remote("c"), commit)
	(complaint{fault.Transient, "CacheDiskFull", []string{"waiting for other large repositories", "--git-cache-size"}}).check(t, err)
	runtime.KeepAlive(first)
	runtime.KeepAlive(second)
	first.FS, second.FS = nil, nil
	wantFile(t, fetch(t, c, remote("c"), commit), "big", noise(200_000))
}

func TestLargeFile(t *testing.T) {
	s := newSite(t)
	s.Push("big", strings.Repeat("x", 65<<20))
	tree := sync(t, newCache(t), s.remote())
	wantFile(t, tree, "app/cm.yaml", "v: 1\n")
	_, err := fs.ReadFile(tree.FS, "big")
	(complaint{fault.Stalled, "RepositoryTooLarge", []string{"68157440 bytes", ".fleetignore"}}).check(t, err)
}
