package cli

import (
	"errors"
	"slices"
)

// several are the errors of a command that went on after the first; each is
// told on its own.
type several []error

// Error returns all messages, one a line.
func (s several) Error() string { return errors.Join(s...).Error() }

// orNil returns nil where nothing went wrong.
func (s several) orNil() error {
	s = slices.DeleteFunc(s, func(err error) bool { return err == nil })
	if len(s) == 0 {
		return nil
	}
	return s
}

// eachOf returns the errors that are to be told.
func eachOf(err error) []error {
	if all, ok := errors.AsType[several](err); ok {
		return all
	}
	return []error{err}
}
