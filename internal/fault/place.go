package fault

import (
	"errors"
	"fmt"
)

// Note is something to tell about a file.
type Note struct {
	// File is the file's path; empty where there is none.
	File string `json:"file,omitempty"`
	// Line is the line in File, from 1; 0 stands for the whole file.
	Line int `json:"line,omitempty"`
	// Message says what, and what to do.
	Message string `json:"message"`
}

// String returns "file:line: message".
func (n Note) String() string {
	switch {
	case n.File == "":
		return n.Message
	case n.Line == 0:
		return n.File + ": " + n.Message
	}
	return fmt.Sprintf("%s:%d: %s", n.File, n.Line, n.Message)
}

// placed is an error with its place.
type placed struct {
	file string
	line int
	// told is set where the error says its place itself.
	told bool
	err  error
}

// At puts the place before an error; line 0 stands for the whole file.
func At(file string, line int, err error) error { return &placed{file: file, line: line, err: err} }

// In marks the place of an error that says it in its own words.
func In(file string, line int, err error) error {
	return &placed{file: file, line: line, told: true, err: err}
}

// Error returns the message with its place.
func (p *placed) Error() string {
	if p.told {
		return p.err.Error()
	}
	return Note{p.file, p.line, p.err.Error()}.String()
}

// Unwrap returns the error itself.
func (p *placed) Unwrap() error { return p.err }

// Notes takes an error apart: one note for each of the errors that were joined,
// with the place where one is known, and the innermost where several are.
func Notes(err error) []Note {
	if err == nil {
		return nil
	}
	if parts := partsOf(err); len(parts) > 0 {
		var all []Note
		for _, part := range parts {
			all = append(all, Notes(part)...)
		}
		return all
	}
	below := Notes(errors.Unwrap(err))
	if anyPlaced(below) {
		return below
	}
	if p, ok := err.(*placed); ok { //nolint:errorlint // each layer is looked at in turn
		return []Note{{p.file, p.line, p.err.Error()}}
	}
	if _, ok := err.(*Error); ok && len(below) > 0 { //nolint:errorlint // each layer is looked at in turn
		return below // a mark says nothing of its own
	}
	return []Note{{Message: err.Error()}}
}

func anyPlaced(notes []Note) bool {
	for _, n := range notes {
		if n.File != "" {
			return true
		}
	}
	return false
}
