// Package gittest serves real Git repositories to tests, over HTTP and SSH in
// the test's own process, with the git program behind.
package gittest

import (
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
)

// Server serves the repositories of one directory over HTTP.
type Server struct {
	*httptest.Server
	// Root holds the bare repositories.
	Root string
	// Logins are the passwords by user name; none means that anybody may in.
	Logins map[string]string

	sent     atomic.Int64
	requests atomic.Int64
}

// Serve starts a server over HTTP that ends with the test.
func Serve(t testing.TB) *Server {
	s := newServer(t)
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// ServeTLS starts a server over HTTPS that ends with the test.
func ServeTLS(t testing.TB) *Server {
	s := newServer(t)
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = quiet()
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func newServer(t testing.TB) *Server {
	return &Server{Root: t.TempDir(), Logins: map[string]string{}}
}

// Sent is the number of bytes of answers so far.
func (s *Server) Sent() int64 { return s.sent.Load() }

// Requests is the number of requests so far.
func (s *Server) Requests() int64 { return s.requests.Load() }

// ServeHTTP hands the request to git http-backend.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	if len(s.Logins) > 0 && !s.mayEnter(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, "who are you", http.StatusUnauthorized)
		return
	}
	backend := &cgi.Handler{
		Path:   git(),
		Args:   []string{"http-backend"},
		Env:    []string{"GIT_PROJECT_ROOT=" + s.Root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=test"},
		Stderr: quietWriter{},
	}
	backend.ServeHTTP(&counted{w, &s.sent}, r)
}

func (s *Server) mayEnter(r *http.Request) bool {
	user, password, ok := r.BasicAuth()
	return ok && s.Logins[user] != "" && s.Logins[user] == password
}

type counted struct {
	http.ResponseWriter
	n *atomic.Int64
}

// Write counts what it writes.
func (c *counted) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.n.Add(int64(n))
	return n, err
}

func git() string {
	path, err := exec.LookPath("git")
	if err != nil {
		panic("the tests need the git program: " + err.Error())
	}
	return strings.TrimSpace(path)
}
