package bundle

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/pkg/fleetyaml"
)

// maxNear is how many directories a message names.
const maxNear = 8

// missing is the error of a path that leads to no directory.
func missing(tree source.Tree, written string) error {
	wanted := clean(written)
	if !fs.ValidPath(wanted) {
		return fault.Stall(reasonPath, fmt.Errorf("path %q leads out of the repository", written))
	}
	if _, err := fs.Stat(tree.FS, wanted); err == nil {
		return fault.Stall(reasonPath, fmt.Errorf("path %q is a file; give its directory %q", written, path.Dir(wanted)))
	}
	return fault.Stall(reasonPath, fmt.Errorf("path %q matches no directory at commit %s%s", written, tree.Commit, near(tree.FS, wanted)))
}

// near tells what is there instead: the nearest name, and what the last
// directory of the path that exists holds.
func near(fsys fs.FS, wanted string) string {
	parent, name := path.Dir(wanted), path.Base(wanted)
	for parent != "." {
		if there, _ := isDir(fsys, parent); there {
			break
		}
		parent, name = path.Dir(parent), path.Base(parent)
	}
	dirs := subdirectories(fsys, parent)
	if guess := fleetyaml.Nearest(name, dirs); guess != "" {
		return fmt.Sprintf("; did you mean %q?", path.Join(parent, guess))
	}
	where := fmt.Sprintf("%q", parent)
	if parent == "." {
		where = "the repository"
	}
	if len(dirs) == 0 {
		return fmt.Sprintf("; %s has no directories", where)
	}
	list := strings.Join(dirs[:min(len(dirs), maxNear)], ", ")
	if len(dirs) > maxNear {
		list += ", …"
	}
	return fmt.Sprintf("; %s has %s", where, list)
}

func subdirectories(fsys fs.FS, dir string) []string {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil
	}
	var dirs []string
	for _, entry := range entries {
		if entry.IsDir() && !isHidden(entry.Name()) {
			dirs = append(dirs, entry.Name())
		}
	}
	return dirs
}
