package fleetyaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"

	"gopkg.in/yaml.v3"
)

// Parse reads the fleet.yaml in data. file is its name in messages. What can be
// ignored is returned as warnings (Strict makes an error of them); the error,
// where there is one, is of type Problems and holds all that is wrong.
func Parse(data []byte, file string) (*FleetYAML, []Problem, error) {
	d := newDecoder(file)
	out := &FleetYAML{}
	if root := d.read(data); root != nil {
		d.into(root, out)
	}
	out.lines = d.lines
	if len(d.problems.errors()) == 0 {
		d.validate(out)
	}
	warnings, errs := d.problems.split()
	if len(errs) > 0 {
		return nil, warnings, errs
	}
	return out, warnings, nil
}

// Values reads a file of Helm values, with the same care for positions.
func Values(data []byte, file string) (map[string]any, []Problem, error) {
	d := newDecoder(file)
	values := map[string]any{}
	if root := resolve(d.read(data)); root != nil && !isNull(root) {
		if root.Kind != yaml.MappingNode {
			d.fail(root, "", "a file of values must be an object, not %s", found(root))
		} else if plain, ok := d.plainBelow(root, place{}).(map[string]any); ok {
			values = plain
		}
	}
	warnings, errs := d.problems.split()
	if len(errs) > 0 {
		return nil, warnings, errs
	}
	return values, warnings, nil
}

// Name returns the name of the bundle in a fleet.yaml that may be wrong in other
// places, so that what is wrong can be told under the right name; empty where
// there is none.
func Name(data []byte) string {
	var named struct {
		Name     yaml.Node `yaml:"name"`
		Metadata yaml.Node `yaml:"metadata"`
	}
	if err := yaml.Unmarshal(data, &named); err != nil {
		if m := nameLine.FindSubmatch(data); m != nil {
			return string(m[1])
		}
		return ""
	}
	if named.Name.Kind == yaml.ScalarNode {
		return named.Name.Value
	}
	var metadata struct {
		Name string `yaml:"name"`
	}
	if err := named.Metadata.Decode(&metadata); err != nil {
		return ""
	}
	return metadata.Name
}

// read parses data and returns the root of its first document, or nil where
// there is none.
func (d *decoder) read(data []byte) *yaml.Node {
	documents := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	if err := documents.Decode(&first); err != nil {
		d.syntax(data, err)
		return nil
	}
	if err := documents.Decode(&second); err == nil {
		d.warn(&second, "", "only the first document of the file is read")
	} else {
		d.syntax(data, err)
	}
	if len(first.Content) == 0 {
		return nil
	}
	return first.Content[0]
}

// Read-only once compiled.
var (
	syntaxError = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)
	// nameLine finds the name in a file that is no YAML.
	nameLine = regexp.MustCompile(`(?m)^name:[ \t]*["']?([^\s"'#]+)`)
)

// syntax reports what the YAML library could not read. The library has its
// lines in the text alone.
func (d *decoder) syntax(data []byte, err error) {
	if errors.Is(err, io.EOF) {
		return
	}
	line, text := 1, err.Error()
	if m := syntaxError.FindStringSubmatch(text); m != nil {
		if n, convErr := strconv.Atoi(m[1]); convErr == nil {
			line = n
		}
		text = m[2]
	}
	if at, mistake := Mistake(data, line); mistake != "" {
		line, text = at, mistake
	}
	d.report(line, Error, "", "not valid YAML: "+text)
}

// into fills out from root.
func (d *decoder) into(root *yaml.Node, out any) {
	value := d.value(root, reflect.TypeOf(out), place{})
	if len(d.problems.errors()) > 0 {
		return
	}
	raw, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(raw, out)
	}
	if err != nil {
		d.fail(root, "", "%v", fmt.Errorf("cannot be read: %w", err))
	}
}
