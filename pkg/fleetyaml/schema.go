package fleetyaml

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Schema returns the strict JSON schema of fleet.yaml. It is made from the types
// that Parse reads, so the two cannot differ. The schema for editors says more
// of each field: see docs/reference.
func Schema() []byte {
	root := schemaOf(reflect.TypeFor[FleetYAML]())
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = "fleet.yaml"
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(root); err != nil {
		// The schema is made of maps, texts and booleans alone.
		panic(fmt.Sprintf("fleetyaml: schema: %v", err))
	}
	return out.Bytes()
}

func schemaOf(t reflect.Type) map[string]any {
	t = deref(t)
	switch {
	case t == genericMap:
		return map[string]any{"type": "object"}
	case t == intOrString:
		return map[string]any{"anyOf": []any{typed("integer"), typed("string")}}
	case reflect.PointerTo(t).Implements(unmarshaler):
		return typed("string")
	}
	switch t.Kind() {
	case reflect.Struct:
		return objectSchema(t)
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return typed("string")
		}
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Bool:
		return typed("boolean")
	case reflect.String:
		return typed("string")
	case reflect.Interface:
		return map[string]any{}
	}
	return typed("integer")
}

func objectSchema(t reflect.Type) map[string]any {
	properties := map[string]any{}
	forUsers := t == reflect.TypeFor[FleetYAML]() || t == reflect.TypeFor[fleet.BundleTarget]()
	for _, f := range fieldsOf(t) {
		if forUsers && writtenByController(f.name) {
			continue
		}
		properties[f.name] = schemaOf(f.typ)
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

func typed(name string) map[string]any { return map[string]any{"type": name} }
