// Package registrytest runs an OCI registry in the process of a test.
package registrytest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/distribution/distribution/v3/configuration"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd" // the server asks for a password
	"github.com/distribution/distribution/v3/registry/handlers"
	"github.com/distribution/distribution/v3/registry/storage"
	"github.com/distribution/distribution/v3/registry/storage/driver/factory"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem" // where the server stores
	"github.com/sirupsen/logrus"
	"golang.org/x/crypto/bcrypt"
)

// The account that the server knows.
const (
	Username = "flotilla"
	Password = "ahoy"
)

const config = `
version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage:
  filesystem: {rootdirectory: %s}
  delete: {enabled: %t}
auth: {htpasswd: {realm: test, path: %s}}
`

// Server is a registry.
type Server struct {
	// Reference is its address and a path.
	Reference string

	t       testing.TB
	dir     string
	handler http.Handler

	mu     sync.Mutex
	server *http.Server
	// sent counts the bytes of answers.
	sent int64
}

// Start runs a registry until the end of the test. Deletes may be forbidden.
func Start(t testing.TB, deletes bool) *Server {
	t.Helper()
	logrus.SetOutput(io.Discard)
	dir := t.TempDir()
	hash, err := bcrypt.GenerateFromPassword([]byte(Password), bcrypt.MinCost)
	must(t, err)
	passwords := filepath.Join(dir, "htpasswd")
	must(t, os.WriteFile(passwords, fmt.Appendf(nil, "%s:%s\n", Username, hash), 0o600))
	parsed, err := configuration.Parse(strings.NewReader(fmt.Sprintf(config, dir, deletes, passwords)))
	must(t, err)
	s := &Server{t: t, dir: dir, handler: handlers.NewApp(context.Background(), parsed)}
	s.Resume()
	t.Cleanup(s.Stop)
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Stop makes the registry unreachable.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		_ = s.server.Close()
		s.server = nil
	}
}

// Resume makes it reachable at its address.
func (s *Server) Resume() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	address := "127.0.0.1:0"
	if s.Reference != "" {
		address, _, _ = strings.Cut(s.Reference, "/")
	}
	listener, err := net.Listen("tcp", address)
	must(s.t, err)
	s.Reference = listener.Addr().String() + "/fleet/contents"
	s.server = &http.Server{Handler: http.HandlerFunc(s.serve)}
	go func(server *http.Server) { _ = server.Serve(listener) }(s.server)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	counted := &counter{ResponseWriter: w}
	s.handler.ServeHTTP(counted, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent += counted.n
}

// Sent is the number of bytes of all answers up to now.
func (s *Server) Sent() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

type counter struct {
	http.ResponseWriter
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.n += int64(n)
	return n, err
}

// Data is that of a Secret with the access to this server.
func (s *Server) Data() map[string][]byte {
	return map[string][]byte{
		"reference": []byte("oci://" + s.Reference), "basicHTTP": []byte("true"),
		"username": []byte(Username), "password": []byte(Password),
	}
}

// CollectGarbage runs the registry's own garbage collection, which deletes all
// that no tag leads to.
func (s *Server) CollectGarbage() {
	s.t.Helper()
	ctx := context.Background()
	driver, err := factory.Create(ctx, "filesystem", map[string]any{"rootdirectory": s.dir})
	must(s.t, err)
	registry, err := storage.NewRegistry(ctx, driver)
	must(s.t, err)
	must(s.t, storage.MarkAndSweep(ctx, driver, registry, storage.GCOpts{RemoveUntagged: true, Quiet: true}))
}

// Blobs are the paths of all that is stored.
func (s *Server) Blobs() []string {
	s.t.Helper()
	paths, err := filepath.Glob(filepath.Join(s.dir, "docker/registry/v2/blobs/sha256/*/*/data"))
	must(s.t, err)
	return paths
}
