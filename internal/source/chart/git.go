package chart

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/source/chartref"
	"github.com/flotilla-sh/flotilla/internal/source/git"
)

// gitRemote says how a Git repository is reached.
func (f *Fetcher) gitRemote(ref chartref.Ref, a Access) git.Remote {
	credentials := git.Credentials{PrivateKey: a.PrivateKey, KnownHosts: a.KnownHosts}
	if strings.HasPrefix(ref.URL, "http") {
		credentials = git.Credentials{Username: a.Username, Password: a.Password}
	}
	return git.Remote{URL: ref.URL, Mirror: f.mirrors.Of, Credentials: credentials, TLS: git.TLS{CABundle: a.CACerts, InsecureSkipTLSVerify: a.Insecure}}
}

// fetchGit gets a chart out of a Git repository, at a commit where one is
// pinned.
func (s *Session) fetchGit(ctx context.Context, ref chartref.Ref, a Access, commit string) (*Chart, error) {
	if len(s.access.Keyring) > 0 {
		return nil, stall(ReasonUnverified, "%s is a Git repository, where charts have no signature, and the Secret has a keyring: take the chart from a repository or registry, or take the key %s out of the Secret", chartref.Place(ref.URL), keyKeyring)
	}
	if err := s.noCosign(chartref.Place(ref.URL)); err != nil {
		return nil, err
	}
	from, commit, err := git.ResolveName(ctx, s.gitRemote(ref, a), firstOf(commit, ref.Revision))
	if err != nil {
		return nil, err
	}
	dir := path.Join(".", ref.Path)
	var tree source.Tree
	var files []source.File
	var errFiles error
	if err := s.git.Read(ctx, from, commit, func(t source.Tree) {
		tree = t
		files, errFiles = collect(tree.FS, dir, s.bounds())
	}); err != nil {
		return nil, err
	}
	if errFiles != nil {
		return nil, fmt.Errorf("%s: %w", ref, errFiles)
	}
	if !hasChartFile(files) {
		return nil, wait(ReasonArchive, "%s has no Chart.yaml in %s: give the chart's directory behind //", chartref.Place(ref.URL), dir)
	}
	return &Chart{Version: versionOf(files), Digest: commit, Files: files, tree: tree.FS, dir: dir, limits: s.bounds()}, nil
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func hasChartFile(files []source.File) bool {
	for _, f := range files {
		if f.Path == "Chart.yaml" {
			return true
		}
	}
	return false
}

// collect reads the files below a directory.
func collect(tree fs.FS, dir string, limits Limits) ([]source.File, error) {
	if !fs.ValidPath(dir) {
		return nil, stall(ReasonInvalid, "the directory %q leads out of the repository", dir)
	}
	u := &unpacker{name: dir, limits: limits}
	var files []source.File
	err := fs.WalkDir(tree, dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return wait(ReasonNotFound, "there is no directory %s", name)
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		case entry.IsDir():
			return nil
		case !entry.Type().IsRegular():
			return wait(ReasonArchive, "%s is a link to a directory or leads out: replace it by what it leads to", name)
		}
		if err := u.count(); err != nil {
			return u.explain(err)
		}
		info, err := fs.Stat(tree, name)
		if err != nil {
			return err
		}
		if u.bytes += info.Size(); u.bytes > limits.Size {
			return u.explain(errTooMuch)
		}
		data, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		files = append(files, source.File{Path: strings.TrimPrefix(strings.TrimPrefix(name, dir), "/"), Data: data})
		return nil
	})
	return files, err
}
