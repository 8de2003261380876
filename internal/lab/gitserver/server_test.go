package gitserver_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/lab/gitserver"
)

func start(t *testing.T) (*gitserver.Server, string) {
	t.Helper()
	server, err := gitserver.New(filepath.Join(t.TempDir(), "git"))
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	return server, web.URL
}

// git runs the client as a user would, apart from the user's configuration.
func git(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func mustGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := git(t, dir, args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// checkout makes a repository with one commit of one file.
func checkout(t *testing.T, content string) string {
	t.Helper()
	dir := t.TempDir()
	mustGit(t, dir, "init", "-q", "-b", "main")
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	mustGit(t, dir, "add", ".")
	mustGit(t, dir, "commit", "-q", "-m", "first")
	return dir
}

func TestPushAndClone(t *testing.T) {
	tests := map[string]string{
		"small, sent at once":     "hello",
		"large, sent in chunks":   noise(3 << 20),
		"nothing but a line feed": "\n",
	}
	for situation, content := range tests {
		t.Run(situation, func(t *testing.T) {
			_, url := start(t)
			work := checkout(t, content)
			mustGit(t, work, "push", "-q", url+"/fleet.git", "main")
			clone := filepath.Join(t.TempDir(), "clone")
			mustGit(t, ".", "clone", "-q", url+"/fleet.git", clone)
			got, err := os.ReadFile(filepath.Join(clone, "file"))
			if err != nil || string(got) != content {
				t.Fatalf("the clone has %d bytes, want %d; %v", len(got), len(content), err)
			}
		})
	}
}

// noise does not compress, so that a push of it exceeds git's http.postBuffer.
func noise(size int) string {
	data, state := make([]byte, size), uint32(1)
	for i := range data {
		state = state*1664525 + 1013904223
		data[i] = byte(state >> 24)
	}
	return string(data)
}

func TestCommit(t *testing.T) {
	server, url := start(t)
	ctx := t.Context()
	first, err := server.Commit(ctx, "fleet", gitserver.Commit{
		Message: "first", Files: map[string]string{"a/one.yaml": "1\n", "a/two.yaml": "2\n"},
	})
	if err != nil {
		t.Fatal(err)
	}
	second, err := server.Commit(ctx, "fleet", gitserver.Commit{
		Message: "second", Files: map[string]string{"a/one.yaml": "one\n"}, Delete: []string{"a/two.yaml"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if refs := mustGit(t, ".", "ls-remote", url+"/fleet.git", "main"); !strings.HasPrefix(refs, second) {
		t.Errorf("main is at %q, want %s", refs, second)
	}
	if parent, _ := server.Git(ctx, "fleet", "rev-parse", "main^"); parent != first {
		t.Errorf("the parent is %s, want %s", parent, first)
	}
	if files, _ := server.Git(ctx, "fleet", "ls-tree", "-r", "--name-only", "main"); files != "a/one.yaml" {
		t.Errorf("the tree has %q", files)
	}
}

func TestUsers(t *testing.T) {
	server, url := start(t)
	if _, err := server.Commit(t.Context(), "secret", gitserver.Commit{Message: "m", Files: map[string]string{"f": "x"}}); err != nil {
		t.Fatal(err)
	}
	if err := server.SetUsers("secret", map[string]string{"ada": "pass:word"}); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		login string
		ok    bool
	}{
		"no user":        {"", false},
		"wrong password": {"ada:other@", false},
		"unknown user":   {"bob:pass%3Aword@", false},
		"right":          {"ada:pass%3Aword@", true},
	}
	for situation, test := range tests {
		t.Run(situation, func(t *testing.T) {
			remote := strings.Replace(url, "http://", "http://"+test.login, 1) + "/secret.git"
			out, err := git(t, ".", "ls-remote", remote)
			if (err == nil) != test.ok {
				t.Errorf("ls-remote: %v: %s", err, out)
			}
		})
	}
	if err := server.SetUsers("secret", nil); err != nil {
		t.Fatal(err)
	}
	mustGit(t, ".", "ls-remote", url+"/secret.git")
}

func TestNothingOutsideTheRoot(t *testing.T) {
	server, url := start(t)
	if _, err := server.Commit(t.Context(), "fleet", gitserver.Commit{Message: "m", Files: map[string]string{"f": "x"}}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/fleet/info/refs", "/absent.git/info/refs?service=git-upload-pack", "/..git/info/refs", "/fleet.users"} {
		response, err := http.Get(url + path) //nolint:noctx // a test's request
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s answers %s, want 404", path, response.Status)
		}
	}
}
