package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v2"

	"github.com/flotilla-sh/flotilla/pkg/fleetyaml"
)

// yamlLine finds the line in a message of the YAML library, which has no field
// for it.
var yamlLine = regexp.MustCompile(`line (\d+): `)

// Parse reads a stream of YAML documents, of which JSON is one kind. Problems
// are returned for all that is no object.
func Parse(text []byte) (*Parsed, error) {
	parsed := &Parsed{}
	values, problems := parsed.read(text)
	for _, v := range values {
		if problem, ok := errors.AsType[*Problem](parsed.add(v.Content, v.Line)); ok {
			problems = append(problems, problem)
		}
	}
	if len(problems) > 0 {
		slices.SortStableFunc(problems, func(a, b *Problem) int { return a.Line - b.Line })
		return nil, problems
	}
	return parsed, nil
}

// Values reads a stream of YAML documents, whatever they hold.
func Values(text []byte) ([]Value, error) {
	values, problems := new(Parsed).read(text)
	if len(problems) > 0 {
		return nil, problems
	}
	return values, nil
}

// read returns what the documents of a text hold, without the empty ones, and
// which are no YAML.
func (p *Parsed) read(text []byte) (values []Value, problems Problems) {
	for _, c := range split(text) {
		content, err := p.decode(c)
		if problem, ok := errors.AsType[*Problem](err); ok {
			problems = append(problems, problem)
		} else if content != nil {
			values = append(values, Value{Content: content, Line: c.line})
		}
	}
	return values, problems
}

// FromObject makes a Doc of an object that is already decoded, as it comes out
// of Kustomize.
func FromObject(object map[string]any) (*Parsed, error) {
	parsed := &Parsed{}
	return parsed, parsed.add(object, 1)
}

// decode reads one document. Keys that are there twice are tolerated, as Helm
// and kubectl do, but reported.
func (p *Parsed) decode(c chunk) (any, error) {
	var value any
	strictErr := yaml.UnmarshalStrict(c.text, &value)
	if strictErr != nil {
		value = nil
		if err := yaml.Unmarshal(c.text, &value); err != nil {
			return nil, syntaxProblem(c, err)
		}
		p.Warnings = append(p.Warnings, duplicateKeys(c, strictErr)...)
	}
	plain, err := toJSON(value)
	if err != nil {
		return nil, &Problem{Line: c.line, Message: err.Error()}
	}
	return plain, nil
}

// syntaxProblem says where in the whole text a document is no YAML.
func syntaxProblem(c chunk, err error) *Problem {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	offset := 0
	if m := yamlLine.FindStringSubmatch(message); m != nil {
		if n, convErr := strconv.Atoi(m[1]); convErr == nil && n > 0 {
			offset = n - 1
		}
		message = strings.Replace(message, m[0], "", 1)
	}
	if strings.HasPrefix(message, "invalid map key") {
		message = "a map as the key of a map (a template in braces needs quotes)"
		offset = c.braces()
	}
	if line, mistake := fleetyaml.Mistake(c.text, offset+1); mistake != "" {
		return &Problem{Line: c.line + line - 1, Message: "this is not YAML: " + mistake}
	}
	message = "this is not YAML: " + strings.Join(strings.Fields(message), " ")
	if excerpt := c.excerpt(offset); excerpt != "" {
		message += fmt.Sprintf(" (near %q)", excerpt)
	}
	return &Problem{Line: c.line + offset, Message: message}
}

// braces returns which line of the document has the first template in braces,
// for an error that the library gives no line: 0 where there is none.
func (c chunk) braces() int {
	if before, _, ok := bytes.Cut(c.text, []byte("{{")); ok {
		return bytes.Count(before, []byte("\n"))
	}
	return 0
}

// excerpt returns a line of the document for a message.
func (c chunk) excerpt(offset int) string {
	const longest = 80
	lines := strings.Split(string(c.text), "\n")
	if offset >= len(lines) {
		return ""
	}
	line := strings.TrimSpace(lines[offset])
	if len(line) > longest {
		line = line[:longest] + "…"
	}
	return strings.ToValidUTF8(line, "")
}

// duplicateKeys turns what strict decoding found into warnings.
func duplicateKeys(c chunk, err error) []Problem {
	var strict *yaml.TypeError
	if !errors.As(err, &strict) {
		return nil
	}
	var warnings []Problem
	for _, message := range strict.Errors {
		line := c.line
		if m := yamlLine.FindStringSubmatch(message); m != nil {
			n, _ := strconv.Atoi(m[1])
			line += n - 1
			message = strings.Replace(message, m[0], "", 1)
		}
		message = strings.Replace(message, "already set in map", "is there twice, the last one holds", 1)
		warnings = append(warnings, Problem{Line: line, Message: message})
	}
	return warnings
}

// add takes a decoded document, which is an object or a list of objects.
func (p *Parsed) add(value any, line int) error {
	object, ok := value.(map[string]any)
	if !ok {
		return &Problem{Line: line, Message: fmt.Sprintf("this is no Kubernetes object but %s: an object has apiVersion, kind and metadata.name", describe(value))}
	}
	if items, ok := listItems(object); ok {
		return p.addList(object, items, line)
	}
	if object["apiVersion"] == nil && object["kind"] == nil {
		p.Foreign = append(p.Foreign, Problem{Line: line, Message: foreign(object)})
		return nil
	}
	doc, err := newDoc(object, line)
	if err != nil {
		return err
	}
	p.Docs = append(p.Docs, *doc)
	return nil
}

// listItems returns the items where the object is a list, such as List or
// ConfigMapList, and not a kind whose name happens to end so.
func listItems(object map[string]any) ([]any, bool) {
	kind, _ := object["kind"].(string)
	items, ok := object["items"].([]any)
	meta, _ := object["metadata"].(map[string]any)
	return items, ok && strings.HasSuffix(kind, "List") && meta["name"] == nil
}

// addList takes a list apart. The items of a typed list may leave out what the
// list says already.
func (p *Parsed) addList(list map[string]any, items []any, line int) error {
	kind := strings.TrimSuffix(list["kind"].(string), "List")
	for _, item := range items {
		if object, ok := item.(map[string]any); ok && kind != "" {
			setDefault(object, "kind", kind)
			setDefault(object, "apiVersion", list["apiVersion"])
		}
		if err := p.add(item, line); err != nil {
			return err
		}
	}
	return nil
}

func setDefault(object map[string]any, key string, value any) {
	if object[key] == nil {
		object[key] = value
	}
}

// newDoc checks that an object is one that can be applied.
func newDoc(object map[string]any, line int) (*Doc, error) {
	dropNulls(object)
	doc := &Doc{Object: object, Line: line}
	if err := doc.identify(); err != nil {
		return nil, &Problem{Line: line, Message: err.Error()}
	}
	text, err := Canonical(object)
	if err != nil {
		return nil, &Problem{Line: line, Message: err.Error()}
	}
	doc.JSON = text
	return doc, nil
}

// Canonical returns an object as canonical JSON, in the form that digests use.
func Canonical(object map[string]any) ([]byte, error) {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(object); err != nil {
		return nil, fmt.Errorf("cannot be written as JSON: %w", err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
