package chart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source/chartref"
	"github.com/flotilla-sh/flotilla/pkg/fleetyaml"
)

// found is what is known of a chart that was downloaded.
type found struct {
	// name is for messages.
	name string
	// version is the version that a constraint led to, where it is known without
	// the chart.
	version string
}

// fetchRepository gets a chart of a repository with an index.
func (s *Session) fetchRepository(ctx context.Context, ref chartref.Ref, a Access, to *os.File) (found, error) {
	c, err := s.client(a)
	if err != nil {
		return found{}, err
	}
	index, err := s.index(ctx, c, ref.URL, a)
	if err != nil {
		return found{}, err
	}
	chosen, err := choose(index, ref)
	if err != nil {
		return found{}, err
	}
	out := found{name: fmt.Sprintf("the chart %s %s of %s", ref.Chart, chosen.Version, chartref.Place(ref.URL)), version: chosen.Version}
	address, err := resolve(ref.URL, chosen)
	if err != nil {
		return found{}, wait(ReasonArchive, "%s: its index gives no URL that can be used", out.name)
	}
	address = s.mirrors.Of(address)
	// The index is not the user's: it cannot send the credential elsewhere.
	if origin(address) != origin(ref.URL) {
		a = a.withoutCredentials()
	}
	if strings.HasPrefix(address, "oci://") {
		artifact, err := chartref.Parse("", address, "")
		if err != nil {
			return found{}, wait(ReasonArchive, "%s: the URL in its index: %w", out.name, err)
		}
		if artifact.Version == "" {
			artifact.Version = chosen.Version
		}
		return s.fetchOCI(ctx, artifact, a, to)
	}
	return out, s.fetchArchive(ctx, address, chosen.Digest, a, out.name, to)
}

// fetchArchive downloads an archive and checks its digest, where one is known.
func (s *Session) fetchArchive(ctx context.Context, address, digest string, a Access, what string, to *os.File) error {
	if err := s.noCosign(what); err != nil {
		return err
	}
	c, err := s.client(a)
	if err != nil {
		return err
	}
	if err := c.download(ctx, address, a, to, s.limits.Size, what); err != nil {
		return err
	}
	if digest = strings.TrimPrefix(digest, "sha256:"); digest != "" {
		sum, err := digestOf(to)
		if err != nil {
			return err
		}
		if sum != strings.ToLower(digest) {
			return wait(ReasonArchive, "%s has the SHA-256 %s, and should have %s: it was changed on its way or on the server", what, sum, digest)
		}
	}
	if len(s.access.Keyring) > 0 {
		return s.verifyHTTP(ctx, c, address, a, what, to)
	}
	return nil
}

// indexFile is the index of a repository, or why there is none. It is asked for
// once in a session, but where indexes are large.
type indexFile struct {
	file *os.File
	err  error
}

// index downloads the index of a repository.
func (s *Session) index(ctx context.Context, c *client, repo string, a Access) (*os.File, error) {
	key := a.identity() + " " + repo
	if known, ok := s.indexes[key]; ok {
		return known.file, known.err
	}
	s.forgetIndexes()
	file, err := s.store.temporary()
	if err == nil {
		address, query := splitQuery(repo)
		err = c.download(ctx, strings.TrimRight(address, "/")+"/index.yaml"+query, a, file, indexLimit, "the index of "+chartref.Place(repo))
		if err != nil {
			discard(file)
		}
	}
	s.indexes[key] = indexFile{file, err}
	return file, err
}

// forgetIndexes drops the indexes so far where they are large: a GitRepo can name
// any number of repositories.
func (s *Session) forgetIndexes() {
	total := int64(0)
	for _, known := range s.indexes {
		if known.err == nil {
			if info, err := known.file.Stat(); err == nil {
				total += info.Size()
			}
		}
	}
	if total <= indexesKept {
		return
	}
	for key, known := range s.indexes {
		if known.err == nil {
			discard(known.file)
			delete(s.indexes, key)
		}
	}
}

func splitQuery(address string) (rest, query string) {
	rest, query, has := strings.Cut(address, "?")
	if has {
		query = "?" + query
	}
	return rest, query
}

// choose picks a version out of an index.
func choose(index *os.File, ref chartref.Ref) (entry, error) {
	if _, err := index.Seek(0, io.SeekStart); err != nil {
		return entry{}, fmt.Errorf("cannot read the cache of charts: %w", err)
	}
	entries, names, err := entriesOf(index, ref.Chart)
	if err != nil {
		return entry{}, wait(ReasonArchive, "the chart repository %s: %w", chartref.Place(ref.URL), err)
	}
	if len(entries) == 0 {
		guess := ""
		if near := fleetyaml.Nearest(ref.Chart, names); near != "" {
			guess = fmt.Sprintf("; did you mean %q?", near)
		}
		return entry{}, wait(ReasonNotFound, "the repository %s has no chart %q%s", chartref.Place(ref.URL), ref.Chart, guess)
	}
	versions := make([]string, len(entries))
	for i, e := range entries {
		versions[i] = e.Version
	}
	at, err := pick(versions, ref.Version)
	if err != nil {
		return entry{}, err
	}
	if at < 0 {
		return entry{}, wait(ReasonNotFound, "no version of the chart %s of %s fits %q%s", ref.Chart, chartref.Place(ref.URL), ref.Version, newest(versions))
	}
	return entries[at], nil
}

// resolve returns the URL of an archive; in an index it may be relative to the
// repository, and then has its query.
func resolve(repo string, e entry) (string, error) {
	if len(e.URLs) == 0 {
		return "", errors.New("none")
	}
	base, err := url.Parse(repo)
	if err != nil {
		return "", err
	}
	relative, err := url.Parse(e.URLs[0])
	if err != nil {
		return "", err
	}
	query := base.RawQuery
	base.Path, base.RawPath = strings.TrimRight(base.Path, "/")+"/", ""
	out := base.ResolveReference(relative)
	if !relative.IsAbs() && relative.RawQuery == "" {
		out.RawQuery = query
	}
	switch out.Scheme {
	case "http", "https", "oci":
		out.User = nil
		return out.String(), nil
	}
	return "", errors.New("of an unknown scheme")
}

func reasonOf(err error) string { return fault.ReasonOf(err, "") }
