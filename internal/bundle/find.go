package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
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
		errs = append(errs, err...)
	}
	slices.Sort(dirs)
	var places []place
	for _, dir := range slices.Compact(dirs) {
		places = append(places, place{dir: dir})
	}
	return places, errors.Join(errs...)
}

// cannotRead is the error of a name that cannot be read. What does not say that
// only a person can mend it may pass by itself, and is looked at again.
func cannotRead(what, name string, err error) error {
	if fault.KindOf(err) == fault.Transient {
		err = fault.Retry(fault.ReasonOf(err, reasonUnreadable), err)
	}
	return fmt.Errorf("cannot read %s%s: %w", what, name, err)
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
		there, err := isDir(tree.FS, p.dir)
		if p.err = err; !there && err == nil {
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

// below returns the bundle directories at and below a path or pattern, and why
// there may be more of them.
func below(tree source.Tree, pattern string) (dirs []string, errs []error) {
	roots, err := expand(tree.FS, clean(pattern))
	if errors.Is(err, path.ErrBadPattern) {
		err = fault.Stall(reasonPath, fmt.Errorf("path %q is not a valid pattern: %w", pattern, err))
	}
	if err == nil && len(roots) == 0 {
		err = missing(tree, pattern)
	}
	errs = append(errs, err)
	for _, root := range roots {
		found, err := walkRoot(tree.FS, root)
		dirs, errs = append(dirs, found...), append(errs, err)
	}
	return dirs, errs
}

// expand returns the directories that match a pattern. A directory whose name
// merely looks like a pattern matches itself.
func expand(fsys fs.FS, pattern string) ([]string, error) {
	if !fs.ValidPath(pattern) {
		return nil, nil
	}
	if there, err := isDir(fsys, pattern); there || err != nil {
		return []string{pattern}, err
	}
	told := &telling{FS: fsys}
	matches, err := fs.Glob(told, pattern)
	matches = slices.DeleteFunc(matches, func(m string) bool { there, _ := isDir(told, m); return !there })
	return matches, cmp.Or(err, told.err)
}

// telling keeps what goes wrong while a pattern is matched: fs.Glob takes what
// cannot be read for empty.
type telling struct {
	fs.FS
	err error
}

// ReadDir lists a directory.
func (t *telling) ReadDir(name string) ([]fs.DirEntry, error) {
	there, err := isDir(t, name)
	if !there {
		return nil, cmp.Or(err, fs.ErrNotExist)
	}
	entries, err := fs.ReadDir(t.FS, name)
	t.err = cmp.Or(t.err, err)
	return entries, err
}

// Stat describes what a name stands for.
func (t *telling) Stat(name string) (fs.FileInfo, error) {
	info, err := fs.Stat(t.FS, name)
	if err != nil && !absent(err) && fault.KindOf(err) == fault.Transient {
		t.err = cmp.Or(t.err, err)
	}
	return info, err
}

// absent tells whether an error says that there is no such name. No other one
// proves that.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) }

func isDir(fsys fs.FS, name string) (bool, error) {
	info, err := fs.Stat(fsys, name)
	if absent(err) {
		return false, nil
	}
	if err != nil {
		return false, cannotRead("the path ", strconv.Quote(name), err)
	}
	return info.IsDir(), nil
}

// walkRoot returns root, where it is a bundle, and the directories below it that
// have a fleet.yaml. Without one of its own, root is a bundle where YAML files
// lie outside of all those. A directory of which nobody can tell is none of
// them and no part of root, and an error.
func walkRoot(fsys fs.FS, root string) ([]string, error) {
	governed := map[string]bool{}
	rootHasYAML := false
	var unclear []error
	err := fs.WalkDir(fsys, root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		case entry.IsDir():
			found, err := fleetFiles(fsys, name)
			if len(found) > 0 || err != nil {
				governed[name] = err == nil
			}
			unclear = append(unclear, err)
		case isYAML(name) && !rootHasYAML:
			rootHasYAML = !hiddenBelow(root, name) && !within(name, governed)
		}
		return nil
	})
	if err != nil {
		return nil, cannotRead("the path ", strconv.Quote(root), err)
	}
	if rootHasYAML {
		governed[root] = true
	}
	maps.DeleteFunc(governed, func(_ string, known bool) bool { return !known })
	return slices.Sorted(maps.Keys(governed)), errors.Join(unclear...)
}

// within tells whether name lies in or below one of dirs.
func within(name string, dirs map[string]bool) bool {
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		if _, ok := dirs[dir]; ok {
			return true
		}
		if dir == "." {
			return false
		}
	}
}

// fleetFiles returns the names of the fleet.yaml in dir, the one that is read
// first. One that cannot be read is not one that is not there.
func fleetFiles(fsys fs.FS, dir string) (found []string, err error) {
	for _, name := range fleetyaml.FileNames() {
		file := path.Join(dir, name)
		info, err := fs.Stat(fsys, file)
		switch {
		case absent(err):
		case err != nil:
			return nil, cannotRead("", file, err)
		case !info.IsDir():
			found = append(found, name)
		}
	}
	return found, nil
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
