package source

import (
	"errors"
	"io"
	"io/fs"
)

// OpenDirectory returns an open directory with these entries.
func OpenDirectory(info fs.FileInfo, entries []fs.DirEntry) fs.ReadDirFile {
	return &directory{info: info, entries: entries}
}

type directory struct {
	info    fs.FileInfo
	entries []fs.DirEntry
}

func (d *directory) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *directory) Close() error               { return nil }

func (d *directory) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.Name(), Err: errors.New("it is a directory")}
}

// ReadDir returns the next n entries, or all that are left.
func (d *directory) ReadDir(n int) ([]fs.DirEntry, error) {
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
