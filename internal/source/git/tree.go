package git

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// maxLinks is how many symbolic links one name may lead through.
const maxLinks = 40

// tree shows a commit as a file system. Files are read when they are asked
// for. Symbolic links are followed inside the repository; a link to a file is
// listed as that file, a link to a directory stays a link, so that a walk does
// not run in circles. Submodules are not there.
type tree struct {
	// mu guards the store, and the directories read so far.
	mu      sync.Mutex
	store   *store
	dirs    map[plumbing.Hash]*object.Tree
	root    plumbing.Hash
	damaged func()
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
	return &tree{store: s, dirs: map[plumbing.Hash]*object.Tree{}, root: c.TreeHash, damaged: damaged}, nil
}

// node is one entry of the tree, found under a name.
type node struct {
	name string
	mode filemode.FileMode
	hash plumbing.Hash
}

// Open opens a file or a directory.
func (t *tree) Open(name string) (fs.File, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.find("open", name)
	if err != nil {
		return nil, err
	}
	info, err := t.info(n)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	if n.mode == filemode.Dir {
		entries, err := t.list(name, n)
		return &dirFile{info: info, entries: entries}, err
	}
	data, err := t.blob(n.hash)
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
	if n.mode == filemode.Dir {
		return nil, pathError("readfile", name, errors.New("it is a directory"))
	}
	data, err := t.blob(n.hash)
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
	if n.mode != filemode.Dir {
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
	info, err := t.info(n)
	if err != nil {
		return nil, pathError("stat", name, err)
	}
	return info, nil
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// find resolves a name, following links.
func (t *tree) find(op, name string) (node, error) {
	if !fs.ValidPath(name) {
		return node{}, pathError(op, name, fs.ErrInvalid)
	}
	n, err := t.resolve(name)
	if err != nil {
		return node{}, pathError(op, name, err)
	}
	n.name = path.Base(name)
	return n, nil
}

// resolve walks down from the root. A link on the way puts its target in front
// of what is left of the name.
func (t *tree) resolve(name string) (node, error) {
	rest := split(name)
	way := []node{{mode: filemode.Dir, hash: t.root}}
	for links := 0; len(rest) > 0; {
		step := rest[0]
		rest = rest[1:]
		if step == ".." {
			if len(way) == 1 {
				return node{}, escapes(name)
			}
			way = way[:len(way)-1]
			continue
		}
		n, err := t.child(way[len(way)-1], step)
		if err != nil {
			return node{}, err
		}
		if n.mode != filemode.Symlink {
			way = append(way, n)
			continue
		}
		if links++; links > maxLinks {
			return node{}, errors.New("too many symbolic links")
		}
		target, err := t.linkTarget(n, name)
		if err != nil {
			return node{}, err
		}
		rest = append(target, rest...)
	}
	return way[len(way)-1], nil
}

func split(name string) []string {
	return slices.DeleteFunc(strings.Split(name, "/"), func(s string) bool { return s == "" || s == "." })
}

func escapes(name string) error {
	return fault.Stall("SymlinkEscapes", fmt.Errorf("the symbolic link leads out of the repository; "+
		"replace %s by the file itself or link to one inside", name))
}

func (t *tree) linkTarget(n node, name string) ([]string, error) {
	target, err := t.blob(n.hash)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(target, []byte("/")) {
		return nil, escapes(name)
	}
	return split(string(target)), nil
}

func (t *tree) child(dir node, name string) (node, error) {
	if dir.mode != filemode.Dir {
		return node{}, fs.ErrNotExist
	}
	entries, err := t.dir(dir.hash)
	if err != nil {
		return node{}, err
	}
	e, err := entries.FindEntry(name)
	if err != nil || e.Mode == filemode.Submodule {
		return node{}, fs.ErrNotExist
	}
	return node{e.Name, e.Mode, e.Hash}, nil
}

// list makes the entries of a directory.
func (t *tree) list(name string, dir node) ([]fs.DirEntry, error) {
	entries, err := t.dir(dir.hash)
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	var all []fs.DirEntry
	for _, e := range entries.Entries {
		if e.Mode == filemode.Submodule {
			continue
		}
		info, err := t.info(t.entry(name, e))
		if err != nil {
			return nil, pathError("readdir", path.Join(name, e.Name), err)
		}
		all = append(all, fs.FileInfoToDirEntry(info))
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all, nil
}

// entry shows a link to a file as the file. A link to a directory, to nothing
// or out of the repository is shown as a link; opening it tells.
func (t *tree) entry(dir string, e object.TreeEntry) node {
	own := node{e.Name, e.Mode, e.Hash}
	if e.Mode != filemode.Symlink {
		return own
	}
	n, err := t.resolve(path.Join(dir, e.Name))
	if err != nil || n.mode == filemode.Dir {
		return own
	}
	n.name = e.Name
	return n
}

func (t *tree) dir(hash plumbing.Hash) (*object.Tree, error) {
	if d, ok := t.dirs[hash]; ok {
		return d, nil
	}
	d, err := object.GetTree(t.store.objects, hash)
	if err != nil {
		return nil, t.lost(err)
	}
	t.dirs[hash] = d
	return d, nil
}

func (t *tree) blob(hash plumbing.Hash) ([]byte, error) {
	b, err := object.GetBlob(t.store.objects, hash)
	if err != nil {
		return nil, t.lost(err)
	}
	if b.Size > maxFile {
		return nil, fault.Stall(ReasonTooLarge, fmt.Errorf("the file has %d bytes; files of more than %d cannot be deployed: take it out, or name it in .fleetignore", b.Size, maxFile))
	}
	r, err := b.Reader()
	if err != nil {
		return nil, t.lost(err)
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, t.lost(err)
	}
	return data, nil
}

// lost reports an object that the clone should have: the next fetch will not
// trust the clone.
func (t *tree) lost(err error) error {
	t.damaged()
	return fmt.Errorf("the Git cache is damaged and will be cloned again: %w", err)
}

func (t *tree) info(n node) (fs.FileInfo, error) {
	if n.mode == filemode.Dir {
		return fileInfo{n.name, 0, fs.ModeDir | 0o555}, nil
	}
	size, err := t.store.objects.EncodedObjectSize(n.hash)
	if err != nil {
		return nil, t.lost(err)
	}
	if n.mode == filemode.Symlink {
		return fileInfo{n.name, size, fs.ModeSymlink | 0o444}, nil
	}
	return fileInfo{n.name, size, 0o444}, nil
}
