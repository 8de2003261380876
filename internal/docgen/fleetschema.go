package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"

	"github.com/flotilla-sh/flotilla/pkg/fleetyaml"
)

// duration is the form of Go's durations, which is all that their rule asks.
const duration = `^(0|([0-9]+(\.[0-9]*)?(ns|us|µs|μs|ms|s|m|h))+)$`

// node is a JSON schema that is being written.
type node = map[string]any

// fleetSchema is the JSON schema of fleet.yaml for editors: the fields that the
// parser reads, with what the definitions say of them. types is the source of
// the fields that fleet.yaml alone has.
func fleetSchema(kinds []definition, types string) ([]byte, error) {
	var root node
	if err := json.Unmarshal(fleetyaml.Schema(), &root); err != nil {
		return nil, err
	}
	for _, lender := range []struct{ kind, path, at string }{
		{"Bundle", "spec", ""},
		{"Bundle", "spec.targets[]", "targetCustomizations[]"},
		{"GitRepo", "spec.targets[]", "overrideTargets[]"},
		{"ImageScan", "spec", "imageScans[]"},
	} {
		at := slices.IndexFunc(kinds, func(d definition) bool { return d.Spec.Names.Kind == lender.kind })
		if at < 0 {
			return nil, fmt.Errorf("no definition of the kind %s", lender.kind)
		}
		from, to := find(rootOf(kinds[at]), lender.path), below(root, lender.at)
		if from == nil || to == nil {
			return nil, fmt.Errorf("%s of %s and %q of fleet.yaml do not both exist", lender.path, lender.kind, lender.at)
		}
		describe(to, from)
	}
	if err := describeOwn(root, types); err != nil {
		return nil, err
	}
	root["description"] = "A fleet.yaml makes a bundle of its directory: how it is rendered, and what is different on some clusters."
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(root)
	return out.Bytes(), err
}

// below follows a path such as imageScans[] in a JSON schema.
func below(n node, path string) node {
	name, list := strings.CutSuffix(path, "[]")
	if name == "" {
		return n
	}
	n = child(child(n, "properties"), name)
	if list {
		n = child(n, "items")
	}
	return n
}

func child(n node, key string) node {
	below, _ := n[key].(map[string]any)
	return below
}

// describe adds to a schema, and to all below it, what a definition says of
// the same fields.
func describe(to node, from *schema) {
	if text := oneLine(from.Description); text != "" {
		to["description"] = strings.TrimPrefix(text, "Flotilla: ")
	}
	limit(to, from)
	properties := child(to, "properties")
	for name, property := range from.Properties {
		if n := child(properties, name); n != nil {
			describe(n, &property)
		}
	}
	var required []any
	for _, name := range from.Required {
		if properties[name] != nil {
			required = append(required, name)
		}
	}
	if len(required) > 0 {
		to["required"] = required
	}
	if n := child(to, "items"); n != nil && from.Items != nil {
		describe(n, from.Items.Schema)
	}
	if n := child(to, "additionalProperties"); n != nil && from.AdditionalProperties != nil {
		describe(n, from.AdditionalProperties.Schema)
	}
}

// limit adds what values there may be.
func limit(to node, from *schema) {
	if len(from.Enum) > 0 {
		var values []any
		for _, value := range from.Enum {
			values = append(values, json.RawMessage(value.Raw))
		}
		to["enum"] = values
	}
	if from.Default != nil {
		to["default"] = json.RawMessage(from.Default.Raw)
	}
	if from.MaxLength != nil {
		to["maxLength"] = *from.MaxLength
	}
	switch {
	case isDuration(from):
		to["pattern"] = duration
	case from.Pattern != "":
		to["pattern"] = from.Pattern
	}
}

// describeOwn adds the comments on the fields that only fleet.yaml has.
func describeOwn(root node, file string) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	places := map[string]node{
		"FleetYAML": root, "Metadata": below(root, "metadata"), "ImageScan": below(root, "imageScans[]"),
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || places[spec.Name.Name] == nil {
			return true
		}
		if fields, ok := spec.Type.(*ast.StructType); ok {
			describeFields(child(places[spec.Name.Name], "properties"), fields)
		}
		return false
	})
	return nil
}

func describeFields(properties node, fields *ast.StructType) {
	for _, field := range fields.Fields.List {
		if field.Tag == nil || field.Doc == nil {
			continue
		}
		tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
		name, _, _ := strings.Cut(tag, ",")
		if n := child(properties, name); n != nil {
			n["description"] = oneLine(field.Doc.Text())
		}
	}
}
