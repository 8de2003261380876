package git

import (
	"fmt"
	"io"
	"io/fs"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

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

func (n node) fileMode() fs.FileMode {
	switch {
	case n.isDir():
		return fs.ModeDir | 0o555
	case n.mode == filemode.Symlink:
		return fs.ModeSymlink | 0o444
	}
	return 0o444
}

// info describes a node. A directory has no size.
func (n node) info() (fs.FileInfo, error) {
	if n.isDir() {
		return fileInfo{n.name, 0, n.fileMode()}, nil
	}
	size, err := n.in.store.objects.EncodedObjectSize(n.hash)
	if err != nil {
		return nil, n.in.lost(err)
	}
	return fileInfo{n.name, size, n.fileMode()}, nil
}
