// Package source turns a reference into a snapshot: a read-only tree of files
// at one commit. Its sub-packages are the only doors to where trees come from.
package source

import (
	"io/fs"

	"github.com/flotilla-sh/flotilla/internal/digest"
)

// Tree is a snapshot: the files of a repository at one commit. FS must not
// change while anyone reads it.
type Tree struct {
	// Commit is the full hash of the commit, or a digest of the files where
	// the tree comes from a plain directory.
	Commit string
	// FS holds the files; it has no .git directory.
	FS fs.FS
}

// File is one file of a bundle. Path is slash-separated and relative to the
// bundle's root.
type File struct {
	Path string `json:"path"`
	Data []byte `json:"data"`
}

// Digest names files by what is in them. Files in another order have another.
func Digest(files []File) string {
	parts := make([][]byte, 0, 2*len(files))
	for _, file := range files {
		parts = append(parts, []byte(file.Path), file.Data)
	}
	return digest.Of(parts...)
}
