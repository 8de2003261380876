// Package chart fetches charts from elsewhere: chart repositories, OCI
// registries, archives and Git repositories. It is the only door to them.
package chart

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/source/chartref"
	"github.com/flotilla-sh/flotilla/internal/source/git"
)

// fetchTimeout bounds the fetch of one chart.
const fetchTimeout = 3 * time.Minute

// GitCache gives the trees of Git repositories to a reader, as often as they lack
// something that it looks for.
type GitCache interface {
	Read(ctx context.Context, remote git.Remote, commit string, read func(source.Tree)) error
}

// Options are what a Fetcher is made with.
type Options struct {
	// Dir is a directory for archives; it may be lost at any time.
	Dir string
	// Git is for charts in Git repositories.
	Git GitCache
	// Limits bound every chart.
	Limits Limits
	// Mirrors are asked in place of what is named.
	Mirrors Mirrors
}

// Fetcher fetches charts. It is safe for concurrent use.
type Fetcher struct {
	store   *store
	git     GitCache
	limits  Limits
	mirrors Mirrors
}

// New returns a Fetcher.
func New(o Options) (*Fetcher, error) {
	kept, err := newStore(o.Dir)
	return &Fetcher{store: kept, git: o.Git, limits: o.Limits, mirrors: o.Mirrors}, err
}

// Session fetches with one access. It asks for each index once, so all charts
// of a session see a repository as it was at one moment. It is not safe for
// concurrent use.
type Session struct {
	*Fetcher
	access  Access
	clients map[string]*client
	indexes map[string]indexFile
	room    int64
}

// Within lets the next charts have so many bytes, where that is less than the
// limit of every chart.
func (s *Session) Within(room int64) { s.room = room }

// bounds are what the next chart may have.
func (s *Session) bounds() Limits {
	return Limits{Size: min(s.limits.Size, max(0, s.room)), Files: s.limits.Files}
}

// Open begins a session, which is to be closed.
func (f *Fetcher) Open(a Access) *Session {
	return &Session{Fetcher: f, access: a, room: f.limits.Size, clients: map[string]*client{}, indexes: map[string]indexFile{}}
}

// Close ends a session.
func (s *Session) Close() {
	for _, c := range s.clients {
		c.close()
	}
	for _, index := range s.indexes {
		if index.err == nil {
			discard(index.file)
		}
	}
}

func (s *Session) client(a Access) (*client, error) {
	id := a.identity()
	if known := s.clients[id]; known != nil {
		return known, nil
	}
	c, err := newClient(a)
	if err == nil {
		s.clients[id] = c
	}
	return c, err
}

// Want names a chart as options do.
type Want struct{ Repo, Chart, Version string }

// Pin is what a Want led to.
type Pin struct {
	// Version is the chart's own; empty where the name led to no version.
	Version string
	// Digest is the SHA-256 of the archive, or the commit of a Git repository.
	Digest string
}

// Chart is a chart that was fetched.
type Chart struct {
	// Version is the version that was wanted, or that a constraint led to.
	Version string
	// Digest is the SHA-256 of the archive, or the commit.
	Digest string
	// Files are the files of the chart.
	Files []source.File

	// tree and dir are where it stands in a Git repository.
	tree   fs.FS
	dir    string
	limits Limits
}

// Limits are those of every chart.
func (f *Fetcher) Limits() Limits { return f.limits }

// Collect reads the files below a directory of a repository.
func (s *Session) Collect(tree fs.FS, dir string) ([]source.File, error) {
	return collect(tree, dir, s.bounds())
}

// Beside reads the files of a directory by its path relative to the chart. Only
// charts in Git repositories have anything beside them.
func (c *Chart) Beside(relative string) ([]source.File, error) {
	if c.tree == nil {
		return nil, stall(ReasonInvalid, "file://%s leads out of an archive: its author must pack the chart with its dependencies", relative)
	}
	return collect(c.tree, path.Join(c.dir, relative), c.limits)
}

// Kept returns the chart of a pin from the disk, or nil where it is not there.
func (s *Session) Kept(w Want, pin Pin) (*Chart, error) {
	ref, err := chartref.Parse(w.Repo, w.Chart, w.Version)
	if err != nil {
		return nil, fault.Stall(ReasonInvalid, err)
	}
	if ref.Kind == chartref.Git {
		return nil, nil //nolint:nilnil // the clone knows what it has
	}
	ref.URL = s.mirrors.Of(ref.URL)
	return s.kept(ref, pin)
}

func (s *Session) kept(ref chartref.Ref, pin Pin) (*Chart, error) {
	archive := s.store.open(s.access.at(ref.URL).identity(), pin.Digest)
	if archive == nil {
		return nil, nil //nolint:nilnil // as Kept says
	}
	defer func() { _ = archive.Close() }()
	files, err := unpack(ref.String(), archive, ref.Path, s.bounds())
	return &Chart{Version: pin.Version, Digest: pin.Digest, Files: files}, err
}

// Exact tells whether a name always means the same chart, so that there is
// nothing newer to look for.
func Exact(w Want) bool {
	ref, err := chartref.Parse(w.Repo, w.Chart, w.Version)
	if err != nil {
		return false
	}
	switch ref.Kind {
	case chartref.Repository:
		return exact(ref.Version)
	case chartref.OCI:
		return ref.Digest != "" || exact(ref.Version)
	case chartref.Archive:
		return ref.Checksum != ""
	}
	return len(ref.Revision) == 40
}

// Fetch returns a chart. Where a pin is given it is the chart of the pin, which
// comes from the disk if it is there.
func (s *Session) Fetch(ctx context.Context, w Want, pin *Pin) (*Chart, error) {
	ref, err := chartref.Parse(w.Repo, w.Chart, w.Version)
	if err != nil {
		return nil, fault.Stall(ReasonInvalid, err)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	ref.URL = s.mirrors.Of(ref.URL)
	a := s.access.at(ref.URL)
	if ref.Kind == chartref.Git {
		commit := ""
		if pin != nil {
			commit = pin.Digest
		}
		return s.fetchGit(ctx, ref, a, commit)
	}
	if pin != nil {
		if kept, err := s.kept(ref, *pin); kept != nil || err != nil {
			return kept, err
		}
		if pin.Version != "" {
			ref.Version = pin.Version
		}
	}
	got, err := s.download(ctx, ref, a)
	if err == nil && pin != nil && got.Digest != pin.Digest {
		return nil, stall(ReasonChanged, "%s is not what it was: its SHA-256 was %s and is %s; if that is meant, raise forceSyncGeneration, or commit another version", ref, pin.Digest, got.Digest)
	}
	return got, err
}

// download gets an archive, keeps it and unpacks it.
func (s *Session) download(ctx context.Context, ref chartref.Ref, a Access) (*Chart, error) {
	file, err := s.store.temporary()
	if err != nil {
		return nil, err
	}
	defer discard(file)
	what, err := s.fetch(ctx, ref, a, file)
	if err != nil {
		return nil, err
	}
	sum, err := digestOf(file)
	if err != nil {
		return nil, err
	}
	files, err := unpack(what.name, file, ref.Path, s.bounds())
	if err != nil {
		return nil, err
	}
	s.store.put(a.identity(), sum, file)
	return &Chart{Version: firstOf(what.version, versionOf(files)), Digest: sum, Files: files}, nil
}

func (s *Session) fetch(ctx context.Context, ref chartref.Ref, a Access, to *os.File) (found, error) {
	switch ref.Kind {
	case chartref.Repository:
		return s.fetchRepository(ctx, ref, a, to)
	case chartref.OCI:
		return s.fetchOCI(ctx, ref, a, to)
	case chartref.Archive:
		what := found{name: chartref.Place(ref.URL)}
		return what, s.fetchArchive(ctx, ref.URL, ref.Checksum, a, what.name, to)
	}
	return found{}, stall(ReasonInvalid, "helm.chart %q is a path: it is not fetched", ref.URL)
}

// versionOf is what a chart calls its version.
func versionOf(files []source.File) string {
	var meta struct {
		Version string `json:"version"`
	}
	for _, f := range files {
		if f.Path == "Chart.yaml" && yaml.Unmarshal(f.Data, &meta) == nil {
			return meta.Version
		}
	}
	return ""
}

// digestOf returns the SHA-256 of a file, and rewinds it.
func digestOf(file *os.File) (string, error) {
	sum := sha256.New()
	_, err := file.Seek(0, io.SeekStart)
	if err == nil {
		_, err = io.Copy(sum, file)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the cache of charts: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
