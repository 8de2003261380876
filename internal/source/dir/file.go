package dir

import (
	"errors"
	"io"
	"io/fs"
)

// named is a file's description under the name of the link that led to it.
type named struct {
	fs.FileInfo
	name string
}

// Name returns the name it was asked for by.
func (n named) Name() string { return n.name }

// dirFile is an open directory.
type dirFile struct {
	info    fs.FileInfo
	entries []fs.DirEntry
}

func (d *dirFile) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *dirFile) Close() error               { return nil }

func (d *dirFile) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.Name(), Err: errors.New("it is a directory")}
}

// ReadDir returns the next n entries, or all that are left.
func (d *dirFile) ReadDir(n int) ([]fs.DirEntry, error) {
	if n > 0 && len(d.entries) == 0 {
		return nil, io.EOF
	}
	if n <= 0 || n > len(d.entries) {
		n = len(d.entries)
	}
	next := d.entries[:n]
	d.entries = d.entries[n:]
	return next, nil
}
