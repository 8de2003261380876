package dir

import (
	"io/fs"
)

// named is a file's description under the name of the link that led to it.
type named struct {
	fs.FileInfo
	name string
}

// Name returns the name it was asked for by.
func (n named) Name() string { return n.name }
