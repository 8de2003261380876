package git_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source/git"
	"github.com/flotilla-sh/flotilla/internal/source/git/gittest"
)

func TestResolve(t *testing.T) {
	s := newSite(t)
	s.Git("tag", "light")
	s.Git("tag", "--annotate", "v1", "--message", "one")
	s.Git("push", "--quiet", "--tags", "origin")
	second := s.Push("app/cm.yaml", "v: 2\n")
	s.Git("push", "--quiet", "origin", "HEAD:master")

	for name, test := range map[string]struct {
		branch, revision, want string
	}{
		"branch":                         {branch: "main", want: second},
		"full branch name":               {branch: "refs/heads/main", want: second},
		"no branch means master":         {want: second},
		"lightweight tag":                {revision: "light", want: s.first},
		"annotated tag is peeled":        {revision: "v1", want: s.first},
		"full tag name":                  {revision: "refs/tags/v1", want: s.first},
		"commit is taken as it is":       {revision: strings.Repeat("ab", 20), want: strings.Repeat("ab", 20)},
		"revision wins over branch":      {branch: "main", revision: "v1", want: s.first},
		"commit in capitals is the same": {revision: strings.ToUpper(s.first), want: s.first},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.remote()
			r.Branch, r.Revision = test.branch, test.revision
			got, err := git.Resolve(t.Context(), r)
			if err != nil || got != test.want {
				t.Errorf("got %s, %v; want %s", got, err, test.want)
			}
		})
	}
}

func TestResolveComplains(t *testing.T) {
	s := newSite(t)
	s.Git("tag", "v1.2.3")
	s.Git("push", "--quiet", "--tags", "origin")
	gittest.NewRepo(t, s.server.Root, "empty.git")
	host := s.server.URL

	for name, test := range map[string]struct {
		remote git.Remote
		want   complaint
	}{
		"mistyped branch": {
			git.Remote{URL: host + "/fleet.git", Branch: "mian"},
			complaint{fault.Waiting, "BranchNotFound", []string{`branch "mian" not found`, `did you mean "main"?`}},
		},
		"no branch given and no master": {
			git.Remote{URL: host + "/fleet.git"},
			complaint{fault.Waiting, "BranchNotFound", []string{`branch "master" not found`, `"main"`, "set branch"}},
		},
		"branch unlike any": {
			git.Remote{URL: host + "/fleet.git", Branch: "production"},
			complaint{fault.Waiting, "BranchNotFound", []string{`default branch is "main"`}},
		},
		"mistyped tag": {
			git.Remote{URL: host + "/fleet.git", Revision: "v1.23"},
			complaint{fault.Waiting, "TagNotFound", []string{`revision "v1.23"`, `did you mean "v1.2.3"?`}},
		},
		"branch as revision": {
			git.Remote{URL: host + "/fleet.git", Revision: "main"},
			complaint{fault.Waiting, "TagNotFound", []string{"set branch instead of revision"}},
		},
		"abbreviated commit": {
			git.Remote{URL: host + "/fleet.git", Revision: s.first[:10]},
			complaint{fault.Waiting, "TagNotFound", []string{"all 40 digits"}},
		},
		"empty repository": {
			git.Remote{URL: host + "/empty.git"},
			complaint{fault.Waiting, "RepositoryEmpty", []string{"empty.git is empty", "push a commit"}},
		},
		"no such repository": {
			git.Remote{URL: host + "/nowhere.git"},
			complaint{fault.Waiting, "RepositoryNotFound", []string{"nowhere.git", "check the URL"}},
		},
		"nobody listens": {
			git.Remote{URL: "http://user:" + secret + "@127.0.0.1:1/fleet.git"},
			complaint{fault.Transient, "GitUnreachable", []string{"127.0.0.1:1", "connection refused", "check the URL"}},
		},
		"name that does not resolve": {
			git.Remote{URL: "https://user:" + secret + "@git.invalid/fleet.git"},
			complaint{fault.Transient, "GitUnreachable", []string{"git.invalid", "DNS"}},
		},
		"path on the hub": {
			git.Remote{URL: "/etc"},
			complaint{fault.Stalled, "InvalidURL", []string{"the hub's own disk"}},
		},
		"file URL": {
			git.Remote{URL: "file:///etc"},
			complaint{fault.Stalled, "InvalidURL", []string{"the hub's own disk"}},
		},
		"unknown scheme": {
			git.Remote{URL: "ftp://user:" + secret + "@example.com/x"},
			complaint{fault.Stalled, "InvalidURL", []string{`"ftp"`}},
		},
		"not a URL": {
			git.Remote{URL: "https://user:" + secret + "@exa mple.com:x/%zz"},
			complaint{fault.Stalled, "InvalidURL", []string{"https://"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := git.Resolve(t.Context(), test.remote)
			test.want.check(t, err)
		})
	}
}

func TestResolveMeetsBadServers(t *testing.T) {
	answer := func(status int, header map[string]string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for k, v := range header {
				w.Header().Set(k, v)
			}
			http.Error(w, "token="+secret, status)
		}
	}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		want    complaint
	}{
		"broken":        {answer(502, nil), complaint{fault.Transient, "GitUnreachable", []string{"502 Bad Gateway"}}},
		"busy":          {answer(429, map[string]string{"Retry-After": "90"}), complaint{fault.Waiting, "GitUnreachable", []string{"wait 90 s"}}},
		"forbidden":     {answer(403, nil), complaint{fault.Waiting, "GitUnauthorized", []string{"read access"}}},
		"not git":       {answer(200, nil), complaint{fault.Transient, "GitUnreachable", nil}},
		"redirect away": {answer(302, map[string]string{"Location": "http://elsewhere.invalid/"}), complaint{fault.Transient, "GitUnreachable", nil}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.handler)
			defer server.Close()
			_, err := git.Resolve(t.Context(), git.Remote{
				URL: server.URL + "/x.git", Credentials: git.Credentials{Username: "user", Password: secret},
			})
			test.want.check(t, err)
		})
	}
}

// A server that accepts the connection and never speaks must not hold a worker
// longer than its context.
func TestResolveGivesUpInTime(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mute.Close() }()
	key, _ := gittest.NewKey(t)
	_, host := gittest.NewKey(t)
	known := []byte("* " + host.PublicKey().Type() + " AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	for _, scheme := range []string{"http", "ssh", "git"} {
		t.Run(scheme, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			r := git.Remote{URL: scheme + "://" + mute.Addr().String() + "/x.git"}
			if scheme == "ssh" {
				r.Credentials = git.Credentials{PrivateKey: key, KnownHosts: known}
			}
			_, err := git.Resolve(ctx, r)
			complaint{fault.Transient, "GitUnreachable", []string{"no answer in the time allowed", mute.Addr().String()}}.check(t, err)
		})
	}
}

func TestCertificates(t *testing.T) {
	server := gittest.ServeTLS(t)
	commit := gittest.NewRepo(t, server.Root, "fleet.git").Push("a", "1")
	ca := server.Certificate().Raw
	r := git.Remote{URL: server.URL + "/fleet.git", Branch: "main"}

	_, err := git.Resolve(t.Context(), r)
	complaint{fault.Waiting, "GitServerUntrusted", []string{"not trusted", "caBundle"}}.check(t, err)

	r.TLS.CABundle = []byte("not PEM")
	_, err = git.Resolve(t.Context(), r)
	complaint{fault.Stalled, "InvalidCABundle", []string{"BEGIN CERTIFICATE"}}.check(t, err)

	for name, tls := range map[string]git.TLS{"CA": {CABundle: certPEM(ca)}, "insecure": {InsecureSkipTLSVerify: true}} {
		r.TLS = tls
		if got, err := git.Resolve(t.Context(), r); err != nil || got != commit {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
		wantFile(t, fetch(t, newCache(t), r, commit), "a", "1")
	}
}
