package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// maxDepth stops links that lead in a circle.
const maxDepth = 64

// lister collects the names of a bundle's files without reading them.
type lister struct {
	fsys fs.FS
	root string
	// options is the file that is read for fleet.yaml, relative to root; it
	// makes no bundle of the directory that it is in.
	options string
	// files are relative to root.
	files []string
	// nested are the directories below root, relative to it, that are bundles
	// of their own.
	nested map[string]bool
	// warnings are of ignore files.
	warnings []fault.Note
}

// list collects what lies in dir, which is relative to the root. inherited are
// the patterns from above.
func (l *lister) list(dir string, inherited ignores, depth int) error {
	full := path.Join(l.root, dir)
	if depth > maxDepth {
		return fault.Stall(reasonFile, fault.At(full, 0, fmt.Errorf("directories are more than %d levels deep; does a link lead back up?", maxDepth)))
	}
	entries, err := fs.ReadDir(l.fsys, full)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", full, err)
	}
	patterns, err := l.patterns(full, inherited)
	if err != nil {
		return err
	}
	isOptions := func(name string) bool { return path.Join(dir, name) == l.options }
	configs, err := fleetFiles(l.fsys, full)
	if err != nil {
		return err
	}
	if dir != "." && len(slices.DeleteFunc(configs, isOptions)) > 0 {
		l.nested[dir] = true
	}
	for _, entry := range entries {
		if skipped(entry.Name()) || patterns.match(entry.Name()) {
			continue
		}
		if err := l.entry(path.Join(dir, entry.Name()), entry, patterns, depth); err != nil {
			return err
		}
	}
	return nil
}

func (l *lister) entry(name string, entry fs.DirEntry, patterns ignores, depth int) error {
	mode := entry.Type()
	if mode&fs.ModeSymlink != 0 {
		info, err := fs.Stat(l.fsys, path.Join(l.root, name))
		if err != nil {
			return brokenLink(path.Join(l.root, name), err)
		}
		mode = info.Mode().Type()
	}
	switch {
	case mode.IsDir() && !patterns.matchContents(entry.Name()):
		return l.list(name, patterns, depth+1)
	case mode.IsRegular():
		l.files = append(l.files, name)
	}
	return nil
}

func brokenLink(name string, err error) error {
	return fault.Stall(reasonFile, fault.In(name, 0, fmt.Errorf("%s is a link that leads out of the repository or nowhere: %w", name, err)))
}

func (l *lister) patterns(dir string, inherited ignores) (ignores, error) {
	file := path.Join(dir, ignoreFile)
	data, err := fs.ReadFile(l.fsys, file)
	if errors.Is(err, fs.ErrNotExist) {
		return inherited, nil
	}
	if err != nil {
		return inherited, fmt.Errorf("cannot read %s: %w", file, err)
	}
	patterns, err := inherited.with(data, file)
	l.warnings = append(l.warnings, ignoreWarnings(data, file)...)
	return patterns, err
}

// skipped tells whether an entry is hidden. The ignore file of Helm charts is
// needed to render them as Helm does.
func skipped(base string) bool { return isHidden(base) && base != ".helmignore" }

// kustomizations are the names that Kustomize looks for.
func kustomizations() []string {
	return []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}
}

func isKustomization(name string) bool { return slices.Contains(kustomizations(), path.Base(name)) }
