package fleetyaml

import (
	"encoding/json"
	"fmt"
	"reflect"

	"gopkg.in/yaml.v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// maxNodes bounds what aliases can blow a small file up to.
	maxNodes = 200_000
	// maxDepth bounds nesting, and with it aliases that contain themselves.
	maxDepth = 100
)

// Read-only.
var (
	genericMap   = reflect.TypeFor[fleet.GenericMap]()
	intOrString  = reflect.TypeFor[intstr.IntOrString]()
	unmarshaler  = reflect.TypeFor[json.Unmarshaler]()
	selectorType = reflect.TypeFor[metav1.LabelSelector]()
)

// decoder walks a YAML tree beside a Go type and builds what encoding/json can
// read without an error, collecting problems on the way.
type decoder struct {
	file     string
	problems Problems
	// lines maps the path of each key to its line, for later validation.
	lines map[string]int
	nodes int
	// full is set once the file has become too large to go on.
	full bool
}

func newDecoder(file string) *decoder {
	return &decoder{file: file, lines: map[string]int{}}
}

func (d *decoder) report(line int, severity Severity, at, message string) {
	d.problems = append(d.problems, Problem{
		File: d.file, Line: max(line, 1), Path: at, Severity: severity, Message: message,
	})
}

func (d *decoder) fail(n *yaml.Node, at, format string, args ...any) {
	d.report(n.Line, Error, at, fmt.Sprintf(format, args...))
}

func (d *decoder) warn(n *yaml.Node, at, format string, args ...any) {
	d.report(n.Line, Warning, at, fmt.Sprintf(format, args...))
}

// place is where in the file the decoder is.
type place struct {
	path  string
	depth int
}

func (p place) key(name string) place {
	if p.path == "" {
		return place{name, p.depth + 1}
	}
	return place{p.path + "." + name, p.depth + 1}
}

func (p place) index(i int) place {
	return place{fmt.Sprintf("%s[%d]", p.path, i), p.depth + 1}
}

// value returns n as t wants it, or nil where it cannot.
func (d *decoder) value(n *yaml.Node, t reflect.Type, at place) any {
	n, t = resolve(n), deref(t)
	if !d.enter(n, at) || isNull(n) {
		return nil
	}
	switch {
	case t == genericMap && n.Kind != yaml.MappingNode:
		return d.mismatch(n, t, at.path)
	case t == genericMap || t.Kind() == reflect.Interface:
		return d.plain(n, at)
	case t == intOrString:
		return d.intOrString(n, at)
	case reflect.PointerTo(t).Implements(unmarshaler):
		return d.custom(n, t, at)
	}
	switch t.Kind() {
	case reflect.Struct:
		return d.object(n, t, at)
	case reflect.Map:
		return d.dictionary(n, t, at)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return d.custom(n, t, at)
		}
		return d.list(n, t, at)
	}
	return d.scalar(n, t, at.path)
}

// below is the place of a pair's value; it is known by the line of its key.
func (d *decoder) below(at place, p pair) place {
	to := at.key(p.key.Value)
	if _, known := d.lines[to.path]; !known {
		d.lines[to.path] = p.key.Line
	}
	return to
}

// enter notes where n stands and tells whether to go on.
func (d *decoder) enter(n *yaml.Node, at place) bool {
	d.nodes++
	if _, known := d.lines[at.path]; !known {
		d.lines[at.path] = n.Line
	}
	if d.full || d.nodes <= maxNodes && at.depth <= maxDepth {
		return !d.full
	}
	d.full = true
	d.fail(n, at.path, "the file is too large or too deeply nested (more than %d values or %d levels, aliases resolved)", maxNodes, maxDepth)
	return false
}

func resolve(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && tagOf(n) == tagNull
}

func (d *decoder) intOrString(n *yaml.Node, at place) any {
	if n.Kind == yaml.ScalarNode && tagOf(n) == tagInt {
		return d.number(n, reflect.TypeFor[int32](), at.path)
	}
	if n.Kind == yaml.ScalarNode && tagOf(n) == tagStr {
		return n.Value
	}
	return d.mismatch(n, intOrString, at.path)
}

// custom reads types that read themselves, such as durations.
func (d *decoder) custom(n *yaml.Node, t reflect.Type, at place) any {
	value := d.plain(n, at)
	raw, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(raw, reflect.New(t).Interface())
	}
	if err != nil {
		d.fail(n, at.path, "%q: %v", at.path, err)
		return nil
	}
	return value
}

func (d *decoder) list(n *yaml.Node, t reflect.Type, at place) any {
	if n.Kind != yaml.SequenceNode {
		return d.mismatch(n, t, at.path)
	}
	out := make([]any, len(n.Content))
	for i, item := range n.Content {
		out[i] = d.value(item, t.Elem(), at.index(i))
	}
	return out
}

func (d *decoder) dictionary(n *yaml.Node, t reflect.Type, at place) any {
	if n.Kind != yaml.MappingNode {
		return d.mismatch(n, t, at.path)
	}
	out := map[string]any{}
	for _, p := range d.pairs(n, at) {
		out[p.key.Value] = d.value(p.value, t.Elem(), d.below(at, p))
	}
	return out
}

func (d *decoder) object(n *yaml.Node, t reflect.Type, at place) any {
	if n.Kind != yaml.MappingNode {
		return d.mismatch(n, t, at.path)
	}
	fields := fieldsOf(t)
	out := map[string]any{}
	for _, p := range d.pairs(n, at) {
		below := d.below(at, p)
		f, exact, ok := find(fields, p.key.Value)
		if !ok {
			d.unknown(p.key, t, fields, below.path)
			continue
		}
		if !exact {
			d.warn(p.key, below.path, "field %q is spelled %q", below.path, f.name)
			below = at.key(f.name)
			d.lines[below.path] = p.key.Line
		}
		out[f.name] = d.value(p.value, f.typ, below)
	}
	return out
}

func (d *decoder) unknown(key *yaml.Node, t reflect.Type, fields []field, at string) {
	message := fmt.Sprintf("unknown field %q", at)
	guess := inside(fields, key.Value)
	if guess == "" {
		guess = Nearest(key.Value, namesOf(fields))
	}
	if guess != "" {
		message += fmt.Sprintf(", did you mean %q?", guess)
	}
	if t == selectorType {
		d.fail(key, at, "%s; a selector without it would select more than it should", message)
		return
	}
	d.warn(key, at, "%s", message)
}

// plain returns n as it is, for values whose type is the user's business.
func (d *decoder) plain(n *yaml.Node, at place) any {
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for _, p := range d.pairs(n, at) {
			below := d.below(at, p)
			out[d.plainKey(p.key, below.path)] = d.plainBelow(p.value, below)
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i, item := range n.Content {
			out[i] = d.plainBelow(item, at.index(i))
		}
		return out
	}
	return d.plainScalar(n, at.path)
}

func (d *decoder) plainBelow(n *yaml.Node, at place) any {
	n = resolve(n)
	if !d.enter(n, at) {
		return nil
	}
	return d.plain(n, at)
}
