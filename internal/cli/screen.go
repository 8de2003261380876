package cli

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// colours are the parts of a text that take no room on a terminal.
var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// fit cuts a text to a terminal, so that its beginning is what one sees. A size
// that is not known cuts nothing.
func fit(text string, width, height int) string {
	if width <= 0 || height <= 0 {
		return text
	}
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	rows := func(line string) int {
		long := utf8.RuneCountInString(strings.TrimSuffix(colours.ReplaceAllString(line, ""), "\n"))
		return max(1, (long+width-1)/width)
	}
	all := 0
	for _, line := range lines {
		all += rows(line)
	}
	if all <= height {
		return text
	}
	shown, left := 0, height-1 // one for what is said of the rest
	for shown < len(lines) && rows(lines[shown]) <= left {
		left -= rows(lines[shown])
		shown++
	}
	return strings.Join(lines[:shown], "") + fmt.Sprintf("… and %d more lines (without --watch all are printed)\n", len(lines)-shown)
}
