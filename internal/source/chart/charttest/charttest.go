// Package charttest packs charts and serves them to tests, as a chart
// repository in the test's own process.
package charttest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Chart returns the files of a small chart with one ConfigMap, which says which
// version it is of. More files may be added.
func Chart(name, version string, more ...string) map[string]string {
	files := map[string]string{
		"Chart.yaml":        fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n", name, version),
		"values.yaml":       "colour: blue\n",
		"templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Chart.Name }}\"}\ndata: {version: \"{{ .Chart.Version }}\", colour: \"{{ .Values.colour }}\"}\n",
	}
	for i := 0; i+1 < len(more); i += 2 {
		files[more[i]] += more[i+1]
	}
	return files
}

// Pack packs files as Helm does, in one directory.
func Pack(dir string, files map[string]string) []byte {
	var headers []tar.Header
	var bodies []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		headers = append(headers, tar.Header{Name: dir + "/" + name, Mode: 0o644, Size: int64(len(files[name]))})
		bodies = append(bodies, files[name])
	}
	return Tar(headers, bodies)
}

// Tar packs entries as they are.
func Tar(headers []tar.Header, bodies []string) []byte {
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	w := tar.NewWriter(packed)
	for i := range headers {
		err := w.WriteHeader(&headers[i])
		if err == nil {
			_, err = io.WriteString(w, bodies[i])
		}
		if err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	if err := packed.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// Server is a chart repository.
type Server struct {
	*httptest.Server
	// Username, Password and Token are asked for, where they are set.
	Username, Password, Token string

	mu       sync.Mutex
	files    map[string][]byte
	redirect map[string]string
	versions map[string][]map[string]any
	asked    []*http.Request
	down     bool
}

// Serve starts a repository that ends with the test.
func Serve(t testing.TB) *Server {
	s := newServer()
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// ServeTLS starts a repository over TLS that ends with the test.
func ServeTLS(t testing.TB) *Server {
	s := newServer()
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func newServer() *Server {
	return &Server{files: map[string][]byte{}, redirect: map[string]string{}, versions: map[string][]map[string]any{}}
}

// CA is the certificate to trust the server by, as PEM.
func (s *Server) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// Add packs a chart and adds it to the index.
func (s *Server) Add(name, version string, more ...string) []byte {
	archive := Pack(name, Chart(name, version, more...))
	s.AddEntry(name, version, name+"-"+version+".tgz", archive)
	return archive
}

// AddEntry adds an archive to the index by a URL, which may be one elsewhere.
func (s *Server) AddEntry(name, version, url string, archive []byte) {
	sum := sha256.Sum256(archive)
	s.mu.Lock()
	s.versions[name] = append(s.versions[name], map[string]any{
		"apiVersion": "v2", "name": name, "version": version, "urls": []string{url}, "digest": hex.EncodeToString(sum[:]),
	})
	s.mu.Unlock()
	if !strings.Contains(url, "://") {
		s.Put("/"+url, archive)
	}
}

// Put serves a file.
func (s *Server) Put(path string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path] = data
}

// Redirect sends those who ask for a path elsewhere.
func (s *Server) Redirect(path, to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.redirect[path] = to
}

// SetDown makes the server fail, or answer again.
func (s *Server) SetDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// Asked are the requests so far.
func (s *Server) Asked() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// ServeHTTP serves the index and the archives.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Clone(r.Context()))
	switch to, file := s.redirect[r.URL.Path], s.files[r.URL.Path]; {
	case s.down:
		http.Error(w, "down", http.StatusServiceUnavailable)
	case !s.mayEnter(r):
		http.Error(w, "who are you", http.StatusUnauthorized)
	case to != "":
		http.Redirect(w, r, to, http.StatusFound)
	case file != nil:
		_, _ = w.Write(file)
	case r.URL.Path == "/index.yaml":
		s.index(w)
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) mayEnter(r *http.Request) bool {
	if s.Token != "" {
		return r.Header.Get("Authorization") == "Bearer "+s.Token
	}
	user, password, _ := r.BasicAuth()
	return user == s.Username && password == s.Password
}

// index writes it in the form that Helm does.
func (s *Server) index(w io.Writer) {
	fmt.Fprint(w, "apiVersion: v1\nentries:\n")
	for _, name := range slices.Sorted(maps.Keys(s.versions)) {
		fmt.Fprintf(w, "  %s:\n", name)
		for _, v := range s.versions[name] {
			raw, err := json.Marshal(v)
			if err != nil {
				panic(err)
			}
			fmt.Fprintf(w, "  - %s\n", raw)
		}
	}
	fmt.Fprint(w, "generated: \"2026-01-01T00:00:00Z\"\n")
}
