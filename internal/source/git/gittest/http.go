// Package gittest serves real Git repositories to tests, over HTTP and SSH in
// the test's own process, with the git program behind.
package gittest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"slices"
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
	// Insist refuses clients that do not ask for this capability, as Azure DevOps
	// does with multi_ack.
	Insist string
	// Hide takes a capability out of what the server says that it can.
	Hide string
	// Beside answers other requests than those of git, by path.
	Beside map[string]http.HandlerFunc

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
	if other, ok := s.Beside[r.URL.Path]; ok {
		other(w, r)
		return
	}
	if len(s.Logins) > 0 && !s.mayEnter(r) {
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, "who are you", http.StatusUnauthorized)
		return
	}
	if s.Insist != "" && !s.asksFor(r) {
		http.Error(w, "this server needs clients with "+s.Insist, http.StatusBadRequest)
		return
	}
	backend := &cgi.Handler{
		Path:   git(),
		Args:   []string{"http-backend"},
		Env:    []string{"GIT_PROJECT_ROOT=" + s.Root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=test"},
		Stderr: quietWriter{},
	}
	backend.ServeHTTP(&counted{w, &s.sent, s.Hide}, r)
}

// asksFor looks into the first line of a request for a pack.
func (s *Server) asksFor(r *http.Request) bool {
	if !strings.HasSuffix(r.URL.Path, "/git-upload-pack") {
		return true
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	line, _, _ := bytes.Cut(body, []byte("\n"))
	return slices.Contains(strings.Fields(string(line)), s.Insist)
}

func (s *Server) mayEnter(r *http.Request) bool {
	user, password, ok := r.BasicAuth()
	return ok && s.Logins[user] != "" && s.Logins[user] == password
}

type counted struct {
	http.ResponseWriter
	n *atomic.Int64
	// hide is overwritten, so that lengths stay.
	hide string
}

// Write counts what it writes.
func (c *counted) Write(p []byte) (int, error) {
	if c.hide != "" && c.Header().Get("Content-Type") == "application/x-git-upload-pack-advertisement" {
		p = bytes.ReplaceAll(p, []byte(" "+c.hide+" "), []byte(" "+strings.Repeat("x", len(c.hide))+" "))
	}
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
