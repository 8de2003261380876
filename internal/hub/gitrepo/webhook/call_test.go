package webhook

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const second = "2222222222222222222222222222222222222222"

// headers are what each provider marks its requests with.
var headers = map[provider]map[string]string{
	github:          {"X-GitHub-Event": "push"},
	gogs:            {"X-Gitea-Event": "push", "X-Gogs-Event": "push", "X-GitHub-Event": "push"},
	gitlab:          {"X-Gitlab-Event": "Tag Push Hook", "X-Gitlab-Event-UUID": "13792a34"},
	bitbucket:       {"X-Hook-UUID": "{9c5b0a2e}", "X-Event-Key": "repo:push"},
	bitbucketServer: {"X-Event-Key": "repo:refs_changed"},
	azure:           {"X-Vss-Activityid": "1"},
}

func headerOf(p provider) http.Header {
	h := http.Header{}
	for k, v := range headers[p] {
		h.Set(k, v)
	}
	return h
}

func sample(t testing.TB, p provider) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", string(p)+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestRead(t *testing.T) {
	main, tag := push{"refs/heads/main", second}, push{"refs/tags/v1.2", second}
	for p, want := range map[provider]struct {
		places []string
		pushes []push
	}{
		github:          {[]string{"github.com/acme/fleet"}, []push{main}},
		gogs:            {[]string{"git.example.com/acme/fleet"}, []push{tag}},
		gitlab:          {[]string{"gitlab.example.com/acme/sub/fleet", "ssh.gitlab.example.com/acme/sub/fleet"}, []push{tag}},
		bitbucket:       {[]string{"bitbucket.org/acme/fleet"}, []push{main, {ref: "refs/heads/gone"}, tag}},
		bitbucketServer: {[]string{"git.example.com/acme/fleet"}, []push{main}},
		azure:           {[]string{"dev.azure.com/acme/team a/my fleet"}, []push{main}},
	} {
		t.Run(string(p), func(t *testing.T) {
			c, err := read(headerOf(p), sample(t, p))
			if err != nil {
				t.Fatal(err)
			}
			places := map[string]bool{}
			for _, address := range c.urls {
				places[place(address)] = true
			}
			wanted := map[string]bool{}
			for _, p := range want.places {
				wanted[p] = true
			}
			if c.from != p || !cmp.Equal(places, wanted) || !cmp.Equal(c.pushes, want.pushes, cmp.AllowUnexported(push{})) {
				t.Errorf("got %+v at %v, want %+v", c, places, want)
			}
		})
	}
}

func TestReadOfNoInterest(t *testing.T) {
	for name, tt := range map[string]struct {
		header, value, body, wrong string
	}{
		"a ping":            {"X-GitHub-Event", "ping", `{"zen":"a","repository":{"clone_url":"https://github.com/acme/fleet"}}`, ""},
		"a merge request":   {"X-Gitlab-Event", "Merge Request Hook", `{"object_kind":"merge_request"}`, ""},
		"a build":           {"X-Vss-Activityid", "1", `{"eventType":"build.complete"}`, ""},
		"a test connection": {"X-Event-Key", "diagnostics:ping", `{"test":true}`, ""},
		"no JSON":           {"X-GitHub-Event", "push", `ref=x`, "not what github sends"},
		"of another type":   {"X-GitHub-Event", "push", `{"ref":[]}`, "not what github sends"},
		"from nowhere":      {"X-Other", "push", `{}`, "headers are missing"},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			h.Set(tt.header, tt.value)
			c, err := read(h, []byte(tt.body))
			if tt.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wrong) {
					t.Errorf("error %v, want %q", err, tt.wrong)
				}
				return
			}
			if err != nil || len(c.pushes) != 0 {
				t.Errorf("got %+v, %v; want no push", c, err)
			}
		})
	}
}

func TestReadForm(t *testing.T) {
	h := headerOf(github)
	h.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	c, err := read(h, []byte("payload=%7B%22ref%22%3A%22refs%2Fheads%2Fx%22%2C%22after%22%3A%22ab%22%7D"))
	if err != nil || len(c.pushes) != 1 || c.pushes[0] != (push{"refs/heads/x", "ab"}) {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestPlace(t *testing.T) {
	for want, spellings := range map[string][]string{
		"github.com/acme/fleet": {
			"https://github.com/acme/fleet", "https://GitHub.com/Acme/fleet.git", "https://user:pass@github.com:443/acme/fleet.git/",
			"git@github.com:acme/fleet.git", "ssh://git@github.com/acme/fleet", "ssh://git@ssh.github.com:443/acme/fleet.git",
			"git://github.com/acme/fleet.git", "github.com:/acme/fleet",
		},
		"git.example.com/proj/app": {
			"https://git.example.com/scm/PROJ/app.git", "ssh://git@git.example.com:7999/proj/app.git", "http://[git.example.com]/proj/app?x=1#y",
		},
		"dev.azure.com/acme/team a/app": {
			"https://dev.azure.com/acme/Team%20A/_git/app", "https://acme@dev.azure.com/acme/Team%20A/_git/app",
			"git@ssh.dev.azure.com:v3/acme/Team%20A/app", "https://acme.visualstudio.com/Team%20A/_git/app",
			"https://acme.visualstudio.com/DefaultCollection/Team A/_git/app", "acme@vs-ssh.visualstudio.com:v3/acme/Team%20A/app",
		},
		"dev.azure.com/acme/app/app": {"https://dev.azure.com/acme/_git/app", "https://acme.visualstudio.com/_git/app", "git@ssh.dev.azure.com:v3/acme/app/app"},
		"2001:db8::1/a/b":            {"https://[2001:db8::1]:8443/a/b.git", "https://[2001:db8::1]/a/b"},
		"":                           {"", "https://", "https://github.com", "github.com", "/srv/git/app", "https:///a/b"},
	} {
		for _, s := range spellings {
			if got := place(s); got != want {
				t.Errorf("place(%q) is %q, want %q", s, got, want)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	all := []provider{github, gogs, gitlab, bitbucket, bitbucketServer, azure}
	for i, p := range all {
		f.Add(i, sample(f, p))
	}
	f.Fuzz(func(t *testing.T, i int, body []byte) {
		p := all[((i%len(all))+len(all))%len(all)]
		c, err := read(headerOf(p), body)
		if err != nil {
			return
		}
		for _, next := range c.pushes {
			if next.commit != "" && strings.Trim(next.commit, "0") == "" {
				t.Errorf("no commit is told as %q", next.commit)
			}
		}
		for _, address := range c.urls {
			place(address)
		}
		if authentic(p, headerOf(p), body, map[string][]byte{}) {
			t.Error("accepted without a secret")
		}
	})
}

func FuzzPlace(f *testing.F) {
	for _, s := range []string{
		"https://github.com/acme/fleet.git", "git@github.com:acme/fleet", "ssh://git@[::1]:22/a/b", "acme@vs-ssh.visualstudio.com:v3/a/b/c", "https://a.visualstudio.com/_git/b", "a%zz://b",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p := place(s)
		if p == "" {
			return
		}
		if host, path, _ := strings.Cut(p, "/"); host == "" || path == "" {
			t.Errorf("place(%q) is %q", s, p)
		}
	})
}
