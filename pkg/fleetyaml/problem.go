package fleetyaml

import (
	"fmt"
	"slices"
	"strings"
)

// Severity says whether a file can be used in spite of a problem.
type Severity int

const (
	// Warning is for what is ignored: the file can be used.
	Warning Severity = iota
	// Error is for what makes the file unusable.
	Error
)

// Problem is one thing that is wrong with a file.
type Problem struct {
	// File is the name of the file as it was given to Parse.
	File string
	// Line is the line in File, from 1.
	Line int
	// Path is the full path of the key, such as
	// targetCustomizations[0].helm.values; empty for the file as a whole.
	Path string
	// Severity is Warning or Error.
	Severity Severity
	// Message says what is wrong and what would be right.
	Message string
}

// String returns "file:line: message".
func (p Problem) String() string {
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
}

// Problems are all problems of a file, in the order of its lines. As an error
// they print one problem a line.
type Problems []Problem

// Error returns all problems, one a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Strict returns warnings as an error, for those who want a file without any.
func Strict(warnings []Problem) error {
	if len(warnings) == 0 {
		return nil
	}
	all := slices.Clone(warnings)
	for i := range all {
		all[i].Severity = Error
	}
	return Problems(all)
}

// split returns the warnings and the errors of ps, each in order of lines.
func (ps Problems) split() (warnings, errs Problems) {
	slices.SortStableFunc(ps, func(a, b Problem) int { return a.Line - b.Line })
	for _, p := range ps {
		if p.Severity == Error {
			errs = append(errs, p)
		} else {
			warnings = append(warnings, p)
		}
	}
	return warnings, errs
}

func (ps Problems) errors() Problems {
	_, errs := slices.Clone(ps).split()
	return errs
}
