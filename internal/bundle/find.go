package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/pkg/fleetyaml"
)

// place is a directory that is to become a bundle.
type place struct {
	// dir is the directory in the repository.
	dir string
	// options is the file that is read for fleet.yaml, relative to dir, where a
	// driven scan names one.
	options string
	// otherOptions are the option files of all bundles that share dir.
	otherOptions []string
	// err is why it cannot.
	err error
}

// find returns the places of bundles. Its error names the paths that lead
// nowhere; the places that were found stand all the same.
func find(tree source.Tree, in Input) ([]place, error) {
	if len(in.Bundles) > 0 {
		return driven(tree, in), nil
	}
	paths := in.Paths
	if len(paths) == 0 {
		paths = []string{"/"}
	}
	var dirs []string
	var errs []error
	for _, p := range paths {
		found, err := below(tree, p)
		dirs = append(dirs, found...)
		errs = append(errs, err)
	}
	slices.Sort(dirs)
	var places []place
	for _, dir := range slices.Compact(dirs) {
		places = append(places, place{dir: dir})
	}
	return places, errors.Join(errs...)
}

// driven makes one place of each entry.
func driven(tree source.Tree, in Input) []place {
	var places []place
	seen := map[[2]string]bool{}
	for _, entry := range in.Bundles {
		p := place{dir: clean(entry.Base)}
		if entry.Options != "" {
			p.options = path.Clean(entry.Options)
		}
		if seen[[2]string{p.dir, p.options}] {
			continue
		}
		seen[[2]string{p.dir, p.options}] = true
		for _, other := range in.Bundles {
			if other.Options != "" && clean(other.Base) == p.dir {
				p.otherOptions = append(p.otherOptions, path.Clean(other.Options))
			}
		}
		if !fs.ValidPath(p.dir) || !isDir(tree.FS, p.dir) {
			p.err = missing(tree, entry.Base)
		}
		places = append(places, p)
	}
	return places
}

// clean makes a path of the repository of what a user wrote.
func clean(p string) string {
	return path.Clean(strings.TrimLeft(strings.TrimSpace(p), "/"))
}

// below returns the bundle directories at and below a path or pattern.
func below(tree source.Tree, pattern string) ([]string, error) {
	roots, err := expand(tree.FS, clean(pattern))
	if err != nil {
		return nil, fault.Stall(reasonPath, fmt.Errorf("path %q is not a valid pattern: %w", pattern, err))
	}
	if len(roots) == 0 {
		return nil, missing(tree, pattern)
	}
	var dirs []string
	for _, root := range roots {
		found, err := walkRoot(tree.FS, root)
		if err != nil {
			return nil, fmt.Errorf("cannot read the path %q: %w", root, err)
		}
		dirs = append(dirs, found...)
	}
	return dirs, nil
}

// expand returns the directories that match a pattern. A directory whose name
// merely looks like a pattern matches itself.
func expand(fsys fs.FS, pattern string) ([]string, error) {
	if !fs.ValidPath(pattern) {
		return nil, nil
	}
	if isDir(fsys, pattern) {
		return []string{pattern}, nil
	}
	matches, err := fs.Glob(fsys, pattern)
	return slices.DeleteFunc(matches, func(m string) bool { return !isDir(fsys, m) }), err
}

func isDir(fsys fs.FS, name string) bool {
	info, err := fs.Stat(fsys, name)
	return err == nil && info.IsDir()
}

// walkRoot returns root, where it is a bundle, and the directories below it that
// have a fleet.yaml. Without one of its own, root is a bundle where YAML files
// lie outside of all those.
func walkRoot(fsys fs.FS, root string) ([]string, error) {
	governed := map[string]bool{}
	rootHasYAML := false
	err := fs.WalkDir(fsys, root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		case entry.IsDir() && len(fleetFiles(fsys, name)) > 0:
			governed[name] = true
		case !entry.IsDir() && isYAML(name) && !rootHasYAML:
			rootHasYAML = !hiddenBelow(root, name) && !within(name, governed)
		}
		return nil
	})
	if rootHasYAML {
		governed[root] = true
	}
	return slices.Sorted(maps.Keys(governed)), err
}

// within tells whether name lies in or below one of dirs.
func within(name string, dirs map[string]bool) bool {
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		if dirs[dir] {
			return true
		}
		if dir == "." {
			return false
		}
	}
}

// fleetFiles returns the names of the fleet.yaml in dir, the one that is read
// first.
func fleetFiles(fsys fs.FS, dir string) []string {
	return slices.DeleteFunc(fleetyaml.FileNames(), func(name string) bool {
		info, err := fs.Stat(fsys, path.Join(dir, name))
		return err != nil || info.IsDir()
	})
}

func isYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// hiddenBelow tells whether name, or a directory between it and root, is hidden.
func hiddenBelow(root, name string) bool {
	if root != "." {
		name = strings.TrimPrefix(name, root+"/")
	}
	return slices.ContainsFunc(strings.Split(name, "/"), isHidden)
}

func isHidden(base string) bool { return strings.HasPrefix(base, ".") && base != "." }
