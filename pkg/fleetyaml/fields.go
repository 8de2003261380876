package fleetyaml

import (
	"reflect"
	"strings"
)

// field is a key that a Go struct reads.
type field struct {
	name string
	typ  reflect.Type
}

// fieldsOf returns the keys of the struct type t, those of inlined structs
// included. Names and types follow encoding/json, which reads the result.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case f.Anonymous && name == "" || strings.Contains(options, "inline"):
			fields = append(fields, fieldsOf(deref(f.Type))...)
		case name == "":
			fields = append(fields, field{name: f.Name, typ: f.Type})
		default:
			fields = append(fields, field{name: name, typ: f.Type})
		}
	}
	return fields
}

func deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// find returns the field that is called name. Like encoding/json it falls back
// to a name that differs only in case.
func find(fields []field, name string) (f field, exact, found bool) {
	for _, f := range fields {
		if f.name == name {
			return f, true, true
		}
	}
	for _, f := range fields {
		if strings.EqualFold(f.name, name) {
			return f, false, true
		}
	}
	return field{}, false, false
}

func namesOf(fields []field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return names
}

// inside returns the path of the key called name one level below fields, for
// keys that were written one level too high.
func inside(fields []field, name string) string {
	for _, f := range fields {
		t := deref(f.typ)
		if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(unmarshaler) {
			continue
		}
		if found, _, ok := find(fieldsOf(t), name); ok {
			return f.name + "." + found.name
		}
	}
	return ""
}
