package git

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/flotilla-sh/flotilla/internal/source"
)

// tree shows a commit as a file system. Files are read when they are asked
// for. Symbolic links are followed inside the repository; a link to a file is
// listed as that file, a link to a directory stays a link, so that a walk does
// not run in circles. A submodule is a directory, which is empty until it is put
// in place; what .gitmodules does not name is not there.
type tree struct {
	// mu guards the store, and the directories read so far. That of the whole
	// repository guards its submodules too.
	mu      sync.Mutex
	commit  plumbing.Hash
	store   *store
	dirs    map[plumbing.Hash]*object.Tree
	root    plumbing.Hash
	damaged func()
	submodules
}

var (
	_ fs.ReadDirFS  = (*tree)(nil)
	_ fs.ReadFileFS = (*tree)(nil)
	_ fs.StatFS     = (*tree)(nil)
)

func newTree(s *store, commit plumbing.Hash, damaged func()) (*tree, error) {
	c, err := object.GetCommit(s.objects, commit)
	if err != nil {
		return nil, err
	}
	return &tree{commit: commit, store: s, dirs: map[plumbing.Hash]*object.Tree{}, root: c.TreeHash, damaged: damaged,
		submodules: submodules{met: map[string]gitlink{}, placed: map[string]*tree{}}}, nil
}

// node is one entry, found under a name. It is at a place in the tree of the
// repository, or of a submodule, that it belongs to.
type node struct {
	in   *tree
	at   string
	name string
	mode filemode.FileMode
	hash plumbing.Hash
}

// isDir tells whether there is, or can be, something below.
func (n node) isDir() bool { return n.mode == filemode.Dir || n.mode == filemode.Submodule }

// Open opens a file or a directory.
func (t *tree) Open(name string) (fs.File, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.find("open", name)
	if err != nil {
		return nil, err
	}
	info, err := n.info()
	if err != nil {
		return nil, pathError("open", name, err)
	}
	if n.isDir() {
		entries, err := t.list(name, n)
		return source.OpenDirectory(info, entries), err
	}
	data, err := n.in.blob(n.hash)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &blobFile{info: info, Reader: bytes.NewReader(data)}, nil
}

// ReadFile returns the content of a file.
func (t *tree) ReadFile(name string) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.find("readfile", name)
	if err != nil {
		return nil, err
	}
	if n.isDir() {
		return nil, pathError("readfile", name, errors.New("it is a directory"))
	}
	data, err := n.in.blob(n.hash)
	if err != nil {
		return nil, pathError("readfile", name, err)
	}
	return data, nil
}

// ReadDir lists a directory, sorted by name.
func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.find("readdir", name)
	if err != nil {
		return nil, err
	}
	if !n.isDir() {
		return nil, pathError("readdir", name, errors.New("it is not a directory"))
	}
	return t.list(name, n)
}

// Stat describes a file or a directory without reading it.
func (t *tree) Stat(name string) (fs.FileInfo, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.find("stat", name)
	if err != nil {
		return nil, err
	}
	info, err := n.info()
	if err != nil {
		return nil, pathError("stat", name, err)
	}
	return info, nil
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// list makes the entries of a directory.
func (t *tree) list(name string, dir node) ([]fs.DirEntry, error) {
	if dir.mode == filemode.Submodule {
		dir.meet()
		return nil, nil
	}
	entries, err := dir.in.dir(dir.hash)
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	var all []fs.DirEntry
	for _, e := range entries.Entries {
		n := dir.entry(e)
		if n.mode == filemode.Submodule && !n.declared() {
			continue
		}
		all = append(all, &dirEntry{t, t.shown(name, n)})
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all, nil
}

// entry is one of a directory.
func (n node) entry(e object.TreeEntry) node {
	return node{in: n.in, at: path.Join(n.at, e.Name), name: e.Name, mode: e.Mode, hash: e.Hash}
}

// shown shows a link to a file as the file. A link to a directory, to nothing
// or out of the repository is shown as a link; opening it tells.
func (t *tree) shown(dir string, own node) node {
	if own.mode != filemode.Symlink {
		return own
	}
	n, err := t.resolve(path.Join(dir, own.name))
	if err != nil || n.isDir() {
		return own
	}
	n.name = own.name
	return n
}

// dirEntry looks at the size of a file only when it is asked: of many files in a
// directory few are read.
type dirEntry struct {
	t *tree
	n node
}

// Name is the name in the directory.
func (e *dirEntry) Name() string { return e.n.name }

// IsDir tells whether it is a directory.
func (e *dirEntry) IsDir() bool { return e.n.isDir() }

// Type is what it is, without looking at it.
func (e *dirEntry) Type() fs.FileMode { return e.n.fileMode().Type() }

// Info looks at it.
func (e *dirEntry) Info() (fs.FileInfo, error) {
	e.t.mu.Lock()
	defer e.t.mu.Unlock()
	return e.n.info()
}
