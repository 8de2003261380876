package git_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/source/git"
	"github.com/flotilla-sh/flotilla/internal/source/git/gittest"
)

// site is a server with one repository that holds one commit on main.
type site struct {
	*gittest.Repo
	server *gittest.Server
	first  string
}

func newSite(t *testing.T) site {
	server := gittest.Serve(t)
	repo := gittest.NewRepo(t, server.Root, "fleet.git")
	return site{repo, server, repo.Push("app/cm.yaml", "v: 1\n")}
}

func (s site) remote() git.Remote {
	return git.Remote{URL: s.server.URL + "/fleet.git", Branch: "main"}
}

func newCache(t *testing.T) *git.Cache {
	return cacheIn(t, t.TempDir())
}

func cacheIn(t *testing.T, dir string) *git.Cache {
	t.Helper()
	c, err := git.NewCache(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sync resolves and fetches.
func sync(t *testing.T, c *git.Cache, r git.Remote) source.Tree {
	t.Helper()
	commit, err := git.Resolve(t.Context(), r)
	if err != nil {
		t.Fatalf("Resolve: %v", err)
	}
	return fetch(t, c, r, commit)
}

func fetch(t *testing.T, c *git.Cache, r git.Remote, commit string) source.Tree {
	t.Helper()
	tree, err := c.Fetch(t.Context(), r, commit)
	if err != nil {
		t.Fatalf("Fetch %s: %v", commit, err)
	}
	if tree.Commit != commit {
		t.Fatalf("the tree is of commit %s, asked for %s", tree.Commit, commit)
	}
	return tree
}

func wantFile(t *testing.T, tree source.Tree, path, content string) {
	t.Helper()
	got, err := fs.ReadFile(tree.FS, path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if string(got) != content {
		t.Errorf("%s is %q, want %q", path, got, content)
	}
}

// complaint is what an error must look like.
type complaint struct {
	kind   fault.Kind
	reason string
	says   []string
}

func (c complaint) check(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if fault.KindOf(err) != c.kind || fault.ReasonOf(err, "") != c.reason {
		t.Errorf("kind %v reason %q, want %v %q: %v", fault.KindOf(err), fault.ReasonOf(err, ""), c.kind, c.reason, err)
	}
	for _, part := range c.says {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		if strings.Contains(e.Error(), secret) {
			t.Errorf("error %q shows the secret", e)
		}
	}
}

// secret is the password of every test; no error may show it.
const secret = "hunter2-s3cr3t"
