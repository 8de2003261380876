package git_test

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/source/git"
	"github.com/flotilla-sh/flotilla/internal/source/git/gittest"
)

// hold puts a commit of another repository at a place, as submodule add does,
// with the URL that is to stand in .gitmodules.
func hold(r *gittest.Repo, at, url, commit string) {
	r.Git("config", "--file", ".gitmodules", "submodule."+at+".path", at)
	r.Git("config", "--file", ".gitmodules", "submodule."+at+".url", url)
	r.Git("update-index", "--add", "--cacheinfo", "160000,"+commit+","+at)
	r.Git("add", ".gitmodules")
	r.Git("commit", "--quiet", "--message", "hold "+at)
	r.Git("push", "--quiet", "origin", "HEAD")
}

// read collects the files at and below a place, links to directories included.
func read(t *testing.T, c *git.Cache, r git.Remote, roots ...string) (map[string]string, error) {
	t.Helper()
	commit, err := git.Resolve(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var files map[string]string
	err = c.Read(t.Context(), r, commit, func(tree source.Tree) {
		files = map[string]string{}
		for _, root := range roots {
			collect(t, tree.FS, root, files)
		}
	})
	return files, err
}

func collect(t *testing.T, fsys fs.FS, root string, files map[string]string) {
	t.Helper()
	entries, err := fs.ReadDir(fsys, root)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := strings.TrimPrefix(root+"/"+e.Name(), "./")
		info, err := fs.Stat(fsys, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			t.Fatal(err)
		case info.IsDir():
			collect(t, fsys, name, files)
		default:
			data, err := fs.ReadFile(fsys, name)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = string(data)
		}
	}
}

func names(files map[string]string) string {
	var all []string
	for name := range files {
		if !strings.HasSuffix(name, ".gitmodules") {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// nested is a repository that holds one that holds another: fleet.git has
// lib at vendor/lib, and lib.git has base at base.
type nested struct {
	site
	lib, base *gittest.Repo
}

func newNested(t *testing.T) nested {
	s := newSite(t)
	n := nested{s, gittest.NewRepo(t, s.server.Root, "lib.git"), gittest.NewRepo(t, s.server.Root, "base.git")}
	n.lib.Push("lib.yaml", "lib: 1\n")
	hold(n.lib, "base", "../base.git", n.base.Push("base.yaml", "base: 1\n"))
	hold(s.Repo, "vendor/lib", "../lib.git", n.lib.Git("rev-parse", "HEAD"))
	return n
}

func TestSubmodules(t *testing.T) {
	s := newNested(t)
	c := newCache(t)
	for name, tt := range map[string]struct {
		roots    []string
		want     string
		requests int64
	}{
		"none is looked at": {[]string{"app"}, "app/cm.yaml", 3},
		"one with another":  {[]string{"vendor"}, "vendor/lib/base/base.yaml vendor/lib/lib.yaml", 7},
		"all":               {[]string{"."}, "app/cm.yaml vendor/lib/base/base.yaml vendor/lib/lib.yaml", 7},
		"a path inside":     {[]string{"vendor/lib/base"}, "vendor/lib/base/base.yaml", 7},
		"no such path":      {[]string{"vendor/lib/absent"}, "", 5},
	} {
		t.Run(name, func(t *testing.T) {
			before := s.server.Requests()
			files, err := read(t, newCache(t), s.remote(), tt.roots...)
			if err != nil || names(files) != tt.want {
				t.Errorf("found %q, %v, want %q", names(files), err, tt.want)
			}
			if n := s.server.Requests() - before; n != tt.requests {
				t.Errorf("%d requests, want %d", n, tt.requests)
			}
		})
	}

	before, err := read(t, c, s.remote(), ".")
	if err != nil || before["vendor/lib/lib.yaml"] != "lib: 1\n" {
		t.Fatalf("%v, %v", before, err)
	}
	asked := s.server.Requests()
	if _, err := read(t, c, s.remote(), "."); err != nil || s.server.Requests() != asked+1 {
		t.Errorf("%d requests for what is there, want that of the poll alone; %v", s.server.Requests()-asked, err)
	}
	s.lib.Write("lib.yaml", "lib: 2\n")
	s.lib.Git("commit", "--quiet", "--message", "two", "lib.yaml")
	s.lib.Git("push", "--quiet", "origin", "HEAD")
	hold(s.Repo, "vendor/lib", "../lib.git", s.lib.Git("rev-parse", "HEAD"))
	after, err := read(t, c, s.remote(), ".")
	if err != nil || after["vendor/lib/lib.yaml"] != "lib: 2\n" || after["vendor/lib/base/base.yaml"] != "base: 1\n" {
		t.Errorf("after another commit of the submodule: %v, %v", after, err)
	}
}

// What a link, in whichever of the repositories, leads to is seen as in a
// checkout.
func TestSubmodulesAndLinks(t *testing.T) {
	s := newNested(t)
	for _, link := range [][2]string{{"../vendor/lib/base", "app/base"}, {"../vendor/lib/lib.yaml", "app/one.yaml"}, {"../vendor/lib/../../README", "app/README"}} {
		if err := os.Symlink(link[0], s.Work+"/"+link[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../../app/cm.yaml", s.lib.Work+"/up.yaml"); err != nil {
		t.Fatal(err)
	}
	s.lib.Git("add", "up.yaml")
	s.lib.Git("commit", "--quiet", "--message", "up")
	s.lib.Git("push", "--quiet", "origin", "HEAD")
	s.Write("README", "read me")
	s.Git("add", "app", "README")
	hold(s.Repo, "vendor/lib", "../lib.git", s.lib.Git("rev-parse", "HEAD"))

	files, err := read(t, newCache(t), s.remote(), "app", "vendor/lib")
	want := "app/README app/base/base.yaml app/cm.yaml app/one.yaml vendor/lib/base/base.yaml vendor/lib/lib.yaml vendor/lib/up.yaml"
	if err != nil || names(files) != want || files["vendor/lib/up.yaml"] != "v: 1\n" || files["app/one.yaml"] != "lib: 1\n" {
		t.Errorf("found %v, %v", files, err)
	}
}

func TestSubmoduleThatCannotBeFetched(t *testing.T) {
	old := strings.Repeat("1", 40)
	broken := map[string]struct {
		url, commit string
		want        complaint
	}{
		"no such repository": {url: "../absent.git", want: complaint{fault.Waiting, "RepositoryNotFound", []string{"/absent.git"}}},
		"no such commit":     {url: "../lib.git", commit: old, want: complaint{fault.Waiting, "CommitNotFound", []string{old, "/lib.git"}}},
		"a file URL":         {url: "file:///srv/git/x.git", want: complaint{fault.Stalled, "InvalidURL", []string{"hub's own disk"}}},
		"a path":             {url: "/srv/git/x.git", want: complaint{fault.Stalled, "InvalidURL", []string{"hub's own disk"}}},
		"a path with a dot":  {url: ".git/../x", want: complaint{fault.Stalled, "InvalidURL", []string{"hub's own disk"}}},
		"the git protocol":   {url: "git://example.com/x.git", want: complaint{fault.Stalled, "InvalidURL", []string{"git://"}}},
		"another scheme":     {url: "ext://sh/x", want: complaint{fault.Stalled, "InvalidURL", []string{`"ext"`}}},
		"out of the server":  {url: "../../../x.git", want: complaint{fault.Stalled, "InvalidURL", []string{"leads out of the server"}}},
		"SSH without a key":  {url: "git@example.com:x/y.git", want: complaint{fault.Stalled, "InvalidSecret", []string{"ssh-auth", "sent to http://127.0.0.1:", "../name.git"}}},
		"no server":          {url: "http://127.0.0.1:1/x.git", want: complaint{fault.Transient, "GitUnreachable", []string{"127.0.0.1:1"}}},
	}
	s := newNested(t)
	at := func(name string) string { return strings.ReplaceAll(name, " ", "-") }
	for _, name := range slices.Sorted(maps.Keys(broken)) {
		hold(s.Repo, at(name), broken[name].url, cmp.Or(broken[name].commit, s.first))
	}
	c := newCache(t)
	for i, name := range slices.Sorted(maps.Keys(broken)) {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, c, s.remote(), "app", at(name))
			want := broken[name].want
			want.says = append(want.says, fmt.Sprintf(".gitmodules:%d: submodule %q: ", 4+3*i, at(name)))
			want.check(t, err)
		})
	}
	if files, err := read(t, c, s.remote(), "app"); err != nil || names(files) != "app/cm.yaml" {
		t.Errorf("who does not look at them gets %q, %v", names(files), err)
	}
}

func TestSubmodulesThatAreNotDeclared(t *testing.T) {
	s := newSite(t)
	s.Git("update-index", "--add", "--cacheinfo", "160000,"+s.first+",undeclared")
	s.Git("commit", "--quiet", "--message", "a link")
	s.Git("push", "--quiet", "origin", "HEAD")
	if files, err := read(t, newCache(t), s.remote(), "."); err != nil || names(files) != "app/cm.yaml" {
		t.Errorf("found %q, %v", names(files), err)
	}
	s.Write(".gitmodules", "[submodule \"x\npath = undeclared\n")
	s.Git("add", ".gitmodules")
	s.Git("commit", "--quiet", "--message", "broken")
	s.Git("push", "--quiet", "origin", "HEAD")
	_, err := read(t, newCache(t), s.remote(), ".")
	complaint{fault.Stalled, "InvalidSubmodule", []string{".gitmodules: it cannot be parsed"}}.check(t, err)
}

// A repository can hold an older commit of itself, which holds an older one.
func TestSubmodulesEnd(t *testing.T) {
	s := newSite(t)
	for range 12 {
		hold(s.Repo, "me", "../fleet.git", s.Git("rev-parse", "HEAD"))
	}
	_, err := read(t, newCache(t), s.remote(), ".")
	complaint{fault.Stalled, "InvalidSubmodule", []string{"me/me/.gitmodules:1: ", "more than 10 deep"}}.check(t, err)

	s = newSite(t)
	var modules strings.Builder
	links := []string{"update-index", "--add"}
	for i := range 501 {
		fmt.Fprintf(&modules, "[submodule \"m%d\"]\npath = m%d\nurl = ../fleet.git\n", i, i)
		links = append(links, "--cacheinfo", fmt.Sprintf("160000,%s,m%d", s.first, i))
	}
	s.Git(links...)
	s.Write(".gitmodules", modules.String())
	s.Git("add", ".gitmodules")
	s.Git("commit", "--quiet", "--message", "many")
	s.Git("push", "--quiet", "origin", "HEAD")
	_, err = read(t, newCache(t), s.remote(), ".")
	complaint{fault.Stalled, "InvalidSubmodule", []string{"more than 500"}}.check(t, err)
}

func TestSubmodulesCountWithTheirRepository(t *testing.T) {
	s := newSite(t)
	other := gittest.NewRepo(t, s.server.Root, "other.git")
	hold(s.Repo, "other", "../other.git", other.Push("big", noise(150_000)))
	s.Push("big", noise(200_000))
	s.Git("update-index", "--add", "--cacheinfo", "160000,"+other.Git("rev-parse", "HEAD")+",other")
	s.Git("commit", "--quiet", "--message", "again")
	s.Git("push", "--quiet", "origin", "HEAD")
	for limit, tooLarge := range map[int64]bool{0: false, 400_000: false, 300_000: true} {
		c := newCache(t)
		if err := c.Bound(limit); err != nil {
			t.Fatal(err)
		}
		for _, root := range []string{"app", "."} {
			_, err := read(t, c, s.remote(), root)
			if !tooLarge || root == "app" {
				if err != nil {
					t.Errorf("limit %d, reading %s: %v", limit, root, err)
				}
				continue
			}
			complaint{fault.Waiting, "RepositoryTooLarge", []string{".gitmodules:1: ", "/other.git", "300000 bytes", "--git-cache-size"}}.check(t, err)
		}
	}
}

func TestCredentialsOfSubmodules(t *testing.T) {
	s := newSite(t)
	home := gittest.ServeTLS(t)
	home.Root = s.server.Root
	home.Logins["user"] = secret
	lib := gittest.NewRepo(t, s.server.Root, "lib.git")
	commit := lib.Push("lib.yaml", "lib: 1\n")
	open := gittest.ServeTLS(t)
	open.Root = s.server.Root
	var shown []string
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = append(shown, r.Header.Get("Authorization"))
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer thief.Close()
	for i, url := range []string{home.URL + "/lib.git", "../lib.git", open.URL + "/lib.git"} {
		hold(s.Repo, fmt.Sprint("good", i), url, commit)
	}
	hold(s.Repo, "bad", thief.URL+"/lib.git", commit)
	for name, r := range map[string]git.Remote{
		"of a Secret": {URL: home.URL + "/fleet.git", Branch: "main", Credentials: basic("user", secret)},
		"in the URL":  {URL: strings.Replace(home.URL, "://", "://user:"+secret+"@", 1) + "/fleet.git", Branch: "main"},
	} {
		t.Run(name, func(t *testing.T) {
			r.TLS.CABundle = slices.Concat(certPEM(home.Certificate().Raw), certPEM(open.Certificate().Raw))
			files, err := read(t, newCache(t), r, "good0", "good1", "good2")
			if err != nil || names(files) != "good0/lib.yaml good1/lib.yaml good2/lib.yaml" {
				t.Errorf("found %q, %v", names(files), err)
			}
			_, err = read(t, newCache(t), r, "bad")
			complaint{fault.Waiting, "GitUnauthorized", []string{`submodule "bad"`, "sent to https://127.0.0.1:"}}.check(t, err)
			r.TLS.CABundle = certPEM(home.Certificate().Raw)
			_, _ = read(t, newCache(t), r, ".") // fails for "bad", too
			if len(shown) == 0 || slices.Max(shown) != "" {
				t.Errorf("another server was shown %q", shown)
			}
		})
	}
}

// What one credential opens is not found in the cache by who has none.
func TestSubmodulesAreNotShared(t *testing.T) {
	s := newNested(t)
	s.server.Logins["user"] = secret
	r := s.remote()
	r.Credentials = basic("user", secret)
	c := newCache(t)
	if _, err := read(t, c, r, "."); err != nil {
		t.Fatal(err)
	}
	stranger := gittest.Serve(t)
	own := gittest.NewRepo(t, stranger.Root, "own.git")
	hold(own, "lib", s.server.URL+"/lib.git", s.lib.Git("rev-parse", "HEAD"))
	_, err := read(t, c, git.Remote{URL: stranger.URL + "/own.git", Branch: "main"}, ".")
	complaint{fault.Waiting, "GitUnauthorized", []string{"/lib.git"}}.check(t, err)
}

func TestSubmodulesOverSSH(t *testing.T) {
	root := t.TempDir()
	repo, lib := gittest.NewRepo(t, root, "fleet.git"), gittest.NewRepo(t, root, "lib.git")
	server, other := gittest.ServeSSH(t, root), gittest.ServeSSH(t, root)
	commit := lib.Push("lib.yaml", "lib: 1\n")
	hold(repo, "relative", "../lib.git", commit)
	hold(repo, "absolute", "ssh://git@"+server.Addr+"/lib.git", commit)
	hold(repo, "elsewhere", "ssh://git@"+other.Addr+"/lib.git", commit)
	r := git.Remote{URL: "ssh://git@" + server.Addr + "/fleet.git", Branch: "main",
		Credentials: git.Credentials{PrivateKey: server.ClientKey, KnownHosts: slices.Concat(server.KnownHosts, []byte("\n"), other.KnownHosts)}}
	files, err := read(t, newCache(t), r, "relative", "absolute")
	if err != nil || names(files) != "absolute/lib.yaml relative/lib.yaml" {
		t.Errorf("found %q, %v", names(files), err)
	}
	_, err = read(t, newCache(t), r, "elsewhere")
	complaint{fault.Stalled, "InvalidSecret", []string{`submodule "elsewhere"`, "sent to ssh://" + server.Addr + " alone"}}.check(t, err)
}

func TestSubmodulesThroughAMirror(t *testing.T) {
	s := newNested(t)
	hold(s.Repo, "vendor/lib", "https://git.example/team/lib.git", s.lib.Git("rev-parse", "HEAD"))
	r := s.remote()
	r.Mirror = func(url string) string { return strings.Replace(url, "https://git.example/team", s.server.URL, 1) }
	files, err := read(t, newCache(t), r, "vendor")
	if err != nil || names(files) != "vendor/lib/base/base.yaml vendor/lib/lib.yaml" {
		t.Errorf("found %q, %v", names(files), err)
	}
}
