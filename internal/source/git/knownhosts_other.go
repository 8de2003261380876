//go:build !linux

package git

import (
	"errors"
	"os"
)

// asFile gives what only reads files a text, through a temporary file.
func asFile(name string, text []byte) (path string, closeFile func(), err error) {
	file, err := os.CreateTemp("", name+"-*")
	if err != nil {
		return "", nil, err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(file.Name())
		return "", nil, err
	}
	return file.Name(), func() { _ = os.Remove(file.Name()) }, nil
}
