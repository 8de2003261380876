// Package dir turns a plain directory into a snapshot, for the command line.
package dir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source"
)

// Open returns the files under a directory. The tree's commit is a digest of
// their names and contents.
func Open(name string) (source.Tree, error) {
	info, err := os.Stat(name)
	if err != nil {
		return source.Tree{}, fmt.Errorf("cannot read the directory %s: %w", name, errors.Unwrap(err))
	}
	if !info.IsDir() {
		return source.Tree{}, fmt.Errorf("%s is a file; give the directory that holds the bundle", name)
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return source.Tree{}, fmt.Errorf("cannot read the directory %s: %w", name, errors.Unwrap(err))
	}
	t := &tree{root}
	sum, err := digest(t)
	if err != nil {
		return source.Tree{}, fmt.Errorf("cannot read the directory %s: %w", name, err)
	}
	return source.Tree{Commit: sum, FS: t}, nil
}

// tree shows a directory as a commit of it would look: without .git, links to
// files as the files, and nothing outside.
type tree struct{ root *os.Root }

var (
	_ fs.ReadDirFS  = (*tree)(nil)
	_ fs.ReadFileFS = (*tree)(nil)
	_ fs.StatFS     = (*tree)(nil)
)

// Open opens a file or a directory.
func (t *tree) Open(name string) (fs.File, error) {
	if err := t.check("open", name); err != nil {
		return nil, err
	}
	info, err := t.root.Stat(name)
	if err != nil {
		return nil, t.explain(name, err)
	}
	f, err := t.root.Open(name)
	if err != nil {
		return nil, t.explain(name, err)
	}
	if !info.IsDir() {
		return f, nil
	}
	defer func() { _ = f.Close() }()
	entries, err := t.ReadDir(name)
	return source.OpenDirectory(named{info, path.Base(name)}, entries), err
}

// ReadFile returns the content of a file.
func (t *tree) ReadFile(name string) ([]byte, error) {
	if err := t.check("readfile", name); err != nil {
		return nil, err
	}
	data, err := t.root.ReadFile(name)
	return data, t.explain(name, err)
}

// Stat describes a file or a directory.
func (t *tree) Stat(name string) (fs.FileInfo, error) {
	if err := t.check("stat", name); err != nil {
		return nil, err
	}
	info, err := t.root.Stat(name)
	if err != nil {
		return nil, t.explain(name, err)
	}
	return named{info, path.Base(name)}, nil
}

// ReadDir lists a directory, sorted by name.
func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := t.check("readdir", name); err != nil {
		return nil, err
	}
	found, err := fs.ReadDir(t.root.FS(), name)
	if err != nil {
		return nil, t.explain(name, err)
	}
	var all []fs.DirEntry
	for _, e := range found {
		if e.Name() != ".git" {
			all = append(all, t.entry(name, e))
		}
	}
	return all, nil
}

// entry shows a link to a file as the file, as a snapshot of Git does.
func (t *tree) entry(dir string, e fs.DirEntry) fs.DirEntry {
	if e.Type() != fs.ModeSymlink {
		return e
	}
	info, err := t.root.Stat(path.Join(dir, e.Name()))
	if err != nil || !info.Mode().IsRegular() {
		return e
	}
	return fs.FileInfoToDirEntry(named{info, e.Name()})
}

// check hides what Git keeps beside the files.
func (t *tree) check(op, name string) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".git" {
			return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
	}
	return nil
}

// explain tells a link that leads out from other errors. The library has no
// type for it, so the link is recognised by what it does: it can be read as a
// link and leads somewhere, yet not from inside.
func (t *tree) explain(name string, err error) error {
	if errors.Is(err, syscall.ENOTDIR) {
		return &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist} // as a commit says it
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || !t.throughLink(name) {
		return err
	}
	return &fs.PathError{Op: "open", Path: name, Err: fault.Stall("SymlinkEscapes", fmt.Errorf(
		"the symbolic link cannot be followed inside the directory; replace it by the file itself or link to one inside (%w)", errors.Unwrap(err)))}
}

// throughLink tells whether any part of the path is a link.
func (t *tree) throughLink(name string) bool {
	for ; name != "."; name = path.Dir(name) {
		if info, err := t.root.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

// digest hashes all names and contents.
func digest(t *tree) (string, error) {
	h := sha256.New()
	err := fs.WalkDir(t, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			add(h, []byte(name), nil)
			return nil
		}
		data, err := t.ReadFile(name)
		add(h, []byte(name), data)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// add hashes a file with its lengths, so that no two lists of files run
// together.
func add(h hash.Hash, name, data []byte) {
	fmt.Fprintf(h, "%d %d\n", len(name), len(data))
	h.Write(name)
	h.Write(data)
}
