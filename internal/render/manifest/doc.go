// Package manifest reads text as Kubernetes objects: it splits YAML streams
// into documents, takes lists apart, and says by file and line what is no
// object. It is pure.
package manifest

import (
	"fmt"
	"strings"
)

// Doc is one object that was read. It is shared between renders: nobody may
// change it.
type Doc struct {
	// Object is the object, without null values.
	Object map[string]any
	// JSON is Object as canonical JSON.
	JSON []byte
	// Line is the first line of the document in its text.
	Line int
	// APIVersion, Kind, Namespace and Name identify the object.
	APIVersion, Kind, Namespace, Name string
}

// Parsed is what one text holds.
type Parsed struct {
	// Docs are the objects in the order of the text.
	Docs []Doc
	// Foreign are the maps that have neither apiVersion nor kind: values, say,
	// or the configuration of some tool.
	Foreign []Problem
	// Warnings tell what is odd about the text but does no harm.
	Warnings []Problem
}

// Value is a document of a text.
type Value struct {
	// Content is what the document holds, as encoding/json knows it.
	Content any
	// Line is the first line of the document in its text.
	Line int
}

// Problem is something that is wrong in a text.
type Problem struct {
	// Line is where, counted from 1.
	Line int
	// Message says what and what to do.
	Message string
}

// Error returns the message with its line.
func (p *Problem) Error() string { return fmt.Sprintf("line %d: %s", p.Line, p.Message) }

// Problems are all that is wrong in a text.
type Problems []*Problem

// Error returns all messages, one a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Annotation returns an annotation of the object, or "".
func (d *Doc) Annotation(name string) string {
	meta, _ := d.Object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	value, _ := annotations[name].(string)
	return value
}
