package gittest

import (
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Repo is a bare repository with a working copy beside it.
type Repo struct {
	// Bare is the directory that servers serve.
	Bare string
	// Work is the working copy.
	Work string

	t testing.TB
}

// NewRepo makes an empty repository under root, whose default branch is main.
func NewRepo(t testing.TB, root, name string) *Repo {
	r := &Repo{Bare: filepath.Join(root, name), Work: t.TempDir(), t: t}
	r.run(root, "init", "--quiet", "--bare", "--initial-branch=main", r.Bare)
	r.run(r.Bare, "config", "http.receivepack", "true")
	r.run(r.Work, "init", "--quiet", "--initial-branch=main")
	r.Git("remote", "add", "origin", r.Bare)
	return r
}

// Git runs git in the working copy and returns its output.
func (r *Repo) Git(args ...string) string { return r.run(r.Work, args...) }

// Configure sets an option of the bare repository.
func (r *Repo) Configure(key, value string) { r.run(r.Bare, "config", key, value) }

func (r *Repo) run(dir string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command(git(), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// Write writes a file of the working copy.
func (r *Repo) Write(path, content string) {
	r.t.Helper()
	full := filepath.Join(r.Work, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// Commit commits everything and returns the commit.
func (r *Repo) Commit(message string) string {
	r.t.Helper()
	r.Git("add", "--all")
	r.Git("commit", "--quiet", "--allow-empty", "--message", message)
	return r.Git("rev-parse", "HEAD")
}

// Push writes a file, commits it and pushes the current branch.
func (r *Repo) Push(path, content string) string {
	r.t.Helper()
	r.Write(path, content)
	commit := r.Commit("write " + path)
	r.Git("push", "--quiet", "origin", "HEAD")
	return commit
}

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

type quietWriter struct{}

// Write drops p.
func (quietWriter) Write(p []byte) (int, error) { return len(p), nil }
