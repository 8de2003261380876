package bundle

import (
	"fmt"
	"path"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

const ignoreFile = ".fleetignore"

// ignores are the patterns that hold in a directory, those of the directories
// above it included.
type ignores struct {
	// names match a file or directory by its name.
	names []string
	// contents match a directory, all of whose contents are ignored.
	contents []string
}

// with returns the patterns of g and those of the ignore file in data.
func (g ignores) with(data []byte, file string) (ignores, error) {
	out := ignores{
		names:    g.names[:len(g.names):len(g.names)],
		contents: g.contents[:len(g.contents):len(g.contents)],
	}
	for i, line := range strings.Split(string(data), "\n") {
		pattern := ignorePattern(line)
		if pattern == "" {
			continue
		}
		if _, err := path.Match(pattern, ""); err != nil {
			return out, fault.Stall(reasonFile, fault.At(file, i+1, fmt.Errorf("%q is not a valid pattern: %w", pattern, err)))
		}
		if dir, ok := strings.CutSuffix(pattern, "/*"); ok {
			out.contents = append(out.contents, dir)
		} else {
			out.names = append(out.names, strings.TrimSuffix(pattern, "/"))
		}
	}
	return out, nil
}

// ignorePattern returns the pattern of a line, or "" where it has none.
func ignorePattern(line string) string {
	line = strings.TrimSuffix(line, "\r")
	if strings.HasPrefix(line, "#") {
		return ""
	}
	trimmed := strings.TrimRight(line, " \t")
	if strings.HasSuffix(trimmed, `\`) && len(trimmed) < len(line) {
		// A blank that is escaped stays; path.Match reads the escape.
		trimmed = line[:len(trimmed)+1]
	}
	return trimmed
}

// ignoreWarnings tells of lines that look as if they did more than they do:
// patterns are matched with names alone, and nothing can be taken back.
func ignoreWarnings(data []byte, file string) []fault.Note {
	var warnings []fault.Note
	for i, line := range strings.Split(string(data), "\n") {
		pattern := ignorePattern(line)
		dir := strings.TrimSuffix(strings.TrimSuffix(pattern, "/*"), "/")
		why := ""
		switch {
		case strings.HasPrefix(pattern, "!"):
			why = "nothing can be taken back with !; it is taken for a part of the name"
		case strings.Contains(dir, "/") && strings.Contains(dir, "**"):
			why = "** is not known; a name holds in all directories below, NAME/* for all that directories of a name hold"
		case strings.Contains(dir, "/"):
			why = fmt.Sprintf("patterns are names and not paths; put %q into the %s of its directory", path.Base(dir), ignoreFile)
		default:
			continue
		}
		warnings = append(warnings, fault.Note{File: file, Line: i + 1, Message: fmt.Sprintf("%q ignores nothing: %s", pattern, why)})
	}
	return warnings
}

// match tells whether the file or directory called base is ignored.
func (g ignores) match(base string) bool { return matchAny(g.names, base) }

// matchContents tells whether all that the directory called base holds is
// ignored.
func (g ignores) matchContents(base string) bool { return matchAny(g.contents, base) }

func matchAny(patterns []string, base string) bool {
	for _, pattern := range patterns {
		// Patterns were checked when they were read.
		if ok, err := path.Match(pattern, base); ok && err == nil {
			return true
		}
	}
	return false
}
