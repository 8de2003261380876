package lint

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// step is one step of a path in an object: a field, or an entry of a list by its
// index or its keys.
type step struct {
	name  string
	index int
	keys  map[string]string
}

// parsePath reads a path as server-side apply writes it, such as
// .spec.containers[name="a"].ports[0].
func parsePath(path string) []step {
	var steps []step
	for path != "" {
		switch path[0] {
		case '.':
			end := strings.IndexAny(path[1:], ".[")
			if end < 0 {
				end = len(path) - 1
			}
			steps = append(steps, step{name: path[1 : end+1], index: -1})
			path = path[end+1:]
		case '[':
			end := strings.IndexByte(path, ']')
			if end < 0 {
				return steps
			}
			steps = append(steps, entryOf(path[1:end]))
			path = path[end+1:]
		default:
			return steps
		}
	}
	return steps
}

func entryOf(text string) step {
	if n, err := strconv.Atoi(text); err == nil {
		return step{index: n}
	}
	s := step{index: -1, keys: map[string]string{}}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(pair, "=")
		s.keys[key] = strings.Trim(value, `"`)
	}
	return s
}

// lines knows where the fields of an object stand in its file.
type lines struct{ root *yaml.Node }

// linesOf finds the object in a text by its first line. What a template renders
// to has no lines.
func linesOf(text []byte, line int) lines {
	if line == 0 {
		return lines{}
	}
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var document yaml.Node
		if decoder.Decode(&document) != nil {
			return lines{}
		}
		if len(document.Content) > 0 && document.Content[0].Line == line {
			return lines{document.Content[0]}
		}
	}
}

// of returns the line of a field, or of the nearest one above it.
func (l lines) of(path []step, line int) int {
	n := l.root
	for _, s := range path {
		for n != nil && n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		if n == nil {
			break
		}
		var at int
		if at, n = s.in(n); n != nil {
			line = at
		}
	}
	return line
}

// in takes one step down.
func (s step) in(n *yaml.Node) (int, *yaml.Node) {
	switch {
	case n.Kind == yaml.MappingNode && s.name != "":
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == s.name {
				return n.Content[i].Line, n.Content[i+1]
			}
		}
	case n.Kind == yaml.SequenceNode && s.index >= 0 && s.index < len(n.Content):
		return n.Content[s.index].Line, n.Content[s.index]
	case n.Kind == yaml.SequenceNode:
		for _, entry := range n.Content {
			if s.matches(entry) {
				return entry.Line, entry
			}
		}
	}
	return 0, nil
}

// entry returns the entry of a list that the step leads to, or nil.
func (s step) entry(list []any) any {
	if s.index >= 0 && s.index < len(list) {
		return list[s.index]
	}
	for _, entry := range list {
		fields, _ := entry.(map[string]any)
		found := 0
		for key, want := range s.keys {
			if fmt.Sprint(fields[key]) == want {
				found++
			}
		}
		if found > 0 && found == len(s.keys) {
			return entry
		}
	}
	return nil
}

func (s step) matches(entry *yaml.Node) bool {
	found := 0
	for i := 0; i+1 < len(entry.Content); i += 2 {
		if s.keys[entry.Content[i].Value] == entry.Content[i+1].Value && entry.Content[i+1].Value != "" {
			found++
		}
	}
	return found == len(s.keys) && found > 0
}
