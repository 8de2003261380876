package fleetyaml

import (
	"bytes"
	"fmt"
)

// Mistake looks in a text that is no YAML for what people most often do to one,
// where the words of a YAML library lead nobody to it: a merge that was left in
// the middle, and a tab near the line that the library complains about. It
// returns the line and what is wrong there, or an empty text. Lines count from 1.
func Mistake(text []byte, line int) (at int, what string) {
	lines := bytes.Split(text, []byte("\n"))
	for i, l := range lines {
		for _, marker := range []string{"<<<<<<< ", ">>>>>>> "} {
			if bytes.HasPrefix(l, []byte(marker)) {
				return i + 1, fmt.Sprintf("a marker of a merge conflict (%s): finish the merge and commit the result", marker[:len(marker)-1])
			}
		}
	}
	for i := max(line-2, 0); i < min(line+1, len(lines)); i++ {
		indent := lines[i][:len(lines[i])-len(bytes.TrimLeft(lines[i], " \t"))]
		if bytes.ContainsRune(indent, '\t') && len(bytes.TrimSpace(lines[i])) > 0 {
			return i + 1, "the line is indented with a tab: YAML takes spaces only"
		}
	}
	return line, ""
}
