package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/digest"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/source/dir"
)

// directories are the DIR arguments of a command as a snapshot with paths in
// it. Paths below the current directory are taken for those that a GitRepo
// would have, so that bundles get the same names and messages name files as
// the user typed them. A directory elsewhere, also one that a link leads to, is a
// whole repository.
type directories struct {
	tree  source.Tree
	paths []string
}

func openDirectories(names []string) (*directories, error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(here)
	if err != nil {
		return nil, fmt.Errorf("cannot read the current directory: %w", errors.Unwrap(err))
	}
	var all directories
	var commits [][]byte
	for _, name := range names {
		tree, err := dir.Open(name)
		if err != nil {
			return nil, err
		}
		commits = append(commits, []byte(tree.Commit))
		all.tree = tree
		path := pathBelow(here, name)
		if _, err := root.Stat(filepath.FromSlash(path)); err == nil {
			all.paths = append(all.paths, path)
		}
	}
	if len(all.paths) == 0 && len(names) == 1 {
		return &all, nil
	}
	if len(all.paths) < len(names) {
		return nil, usagef("go to the root of the repository: more than one directory can only be given as paths below the current one")
	}
	all.tree = source.Tree{Commit: digest.Of(commits...), FS: root.FS()}
	return &all, nil
}

// pathBelow returns the slash-separated path of a directory below here, or ""
// where it is not.
func pathBelow(here, name string) string {
	if !filepath.IsAbs(name) {
		name = filepath.Join(here, name)
	}
	path, err := filepath.Rel(here, name)
	if err != nil || !filepath.IsLocal(path) {
		return ""
	}
	return filepath.ToSlash(path)
}

// baseName is what a repository in a directory may be called where nobody says.
func baseName(name string) string {
	full, err := filepath.Abs(name)
	if err != nil {
		return "bundle"
	}
	return strings.ToLower(filepath.Base(full))
}
