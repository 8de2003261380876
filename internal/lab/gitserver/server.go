// Package gitserver serves bare Git repositories over smart HTTP, with push.
// Git itself does the work: each request runs "git http-backend". Pushing to
// a repository that does not exist creates it, so that a user of the lab, or
// a test, needs no step of its own for that.
package gitserver

import (
	"context"
	"fmt"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// namePattern is what a repository may be called; it keeps every path inside
// the root.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Server serves the repositories ROOT/NAME.git as /NAME.git. Repositories
// and their users are read from the disk at each request.
type Server struct {
	root string
	git  string
}

// New returns a server for the repositories below root, which it creates.
func New(root string) (*Server, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("the Git server needs the program git: %w", err)
	}
	root, err = filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, err
	}
	return &Server{root: root, git: git}, nil
}

// Path returns the directory of a repository on disk.
func (s *Server) Path(name string) string {
	return filepath.Join(s.root, name+".git")
}

// Create makes an empty repository whose default branch is main. It does
// nothing where the repository exists.
func (s *Server) Create(ctx context.Context, name string) error {
	if !namePattern.MatchString(name) {
		return fmt.Errorf("repository name %q: use letters, digits, '.', '_' and '-'", name)
	}
	if s.exists(name) {
		return nil
	}
	_, err := s.run(ctx, nil, "init", "--quiet", "--bare", "--initial-branch=main", s.Path(name))
	return err
}

// ServeHTTP answers the requests of a Git client.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, ok := repositoryName(r.URL.Path)
	if !ok {
		http.NotFound(w, r)
		return
	}
	user, ok := s.authenticate(name, r)
	if !ok {
		w.Header().Set("WWW-Authenticate", `Basic realm="`+name+`"`)
		http.Error(w, "repository "+name+" needs a user name and a password", http.StatusUnauthorized)
		return
	}
	if !s.exists(name) && !s.createForPush(w, r, name) {
		return
	}
	if err := s.backend(w, r, user); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// createForPush makes a repository that a push asks for; for anything else
// it answers that there is none.
func (s *Server) createForPush(w http.ResponseWriter, r *http.Request, name string) bool {
	if r.URL.Query().Get("service") != "git-receive-pack" {
		http.NotFound(w, r)
		return false
	}
	if err := s.Create(r.Context(), name); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return false
	}
	return true
}

// backend hands the request to git http-backend. CGI wants to know the length
// of a body beforehand, and a large push is sent in chunks, so such a body is
// kept in a file first.
func (s *Server) backend(w http.ResponseWriter, r *http.Request, user string) error {
	if r.ContentLength < 0 {
		body, size, err := spool(r.Body)
		if err != nil {
			return fmt.Errorf("cannot store the request: %w", err)
		}
		defer func() { _ = body.Close() }()
		r = r.Clone(r.Context())
		r.Body, r.ContentLength, r.TransferEncoding = body, size, nil
	}
	handler := &cgi.Handler{
		Path: s.git,
		Args: []string{"http-backend"},
		Dir:  s.root,
		Env: append(isolated(),
			"GIT_PROJECT_ROOT="+s.root,
			"GIT_HTTP_EXPORT_ALL=1",
			// A named user is what allows a push.
			"REMOTE_USER="+user),
	}
	handler.ServeHTTP(w, r)
	return nil
}

func (s *Server) exists(name string) bool {
	_, err := os.Stat(filepath.Join(s.Path(name), "HEAD"))
	return err == nil
}

// repositoryName takes the repository out of a path such as
// /NAME.git/info/refs.
func repositoryName(path string) (string, bool) {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	name, ok := strings.CutSuffix(first, ".git")
	return name, ok && namePattern.MatchString(name)
}

// isolated keeps the configuration of the person who runs the server out.
func isolated() []string {
	return []string{"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1"}
}
