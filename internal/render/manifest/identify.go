package manifest

import (
	"errors"
	"fmt"
	"slices"
)

// identify reads what names the object and says what is missing.
func (d *Doc) identify() error {
	var err error
	if d.Kind, err = text(d.Object, "kind"); err != nil {
		return err
	}
	if d.APIVersion, err = text(d.Object, "apiVersion"); err != nil {
		return err
	}
	if d.Kind == "" || d.APIVersion == "" {
		return d.notAnObject()
	}
	meta, ok := d.Object["metadata"].(map[string]any)
	if !ok {
		return fmt.Errorf("this %s has no metadata.name: give it one", d.Kind)
	}
	return d.identifyMeta(meta)
}

func (d *Doc) identifyMeta(meta map[string]any) error {
	var err error
	if d.Name, err = text(meta, "name"); err != nil {
		return fmt.Errorf("metadata.%w of this %s", err, d.Kind)
	}
	if d.Namespace, err = text(meta, "namespace"); err != nil {
		return fmt.Errorf("metadata.%w of %s %s", err, d.Kind, d.Name)
	}
	if d.Name == "" {
		if meta["generateName"] != nil {
			return fmt.Errorf("this %s has metadata.generateName, which would make a new object at every apply: give it a metadata.name", d.Kind)
		}
		return fmt.Errorf("this %s has no metadata.name: give it one", d.Kind)
	}
	return errors.Join(d.stringsOnly(meta, "labels"), d.stringsOnly(meta, "annotations"))
}

// stringsOnly checks a map of strings: a bare true or 1.10 is the most common
// mistake in them, and the API server's message for it names no key.
func (d *Doc) stringsOnly(meta map[string]any, field string) error {
	value, ok := meta[field]
	if !ok {
		return nil
	}
	entries, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("metadata.%s of %s %s is %s: it must be a map of strings", field, d.Kind, d.Name, describe(value))
	}
	for _, key := range sortedKeys(entries) {
		if _, ok := entries[key].(string); !ok {
			return fmt.Errorf("metadata.%s[%q] of %s %s is %s: put it in quotes", field, key, d.Kind, d.Name, describe(entries[key]))
		}
	}
	return nil
}

// notAnObject says what a map without kind or apiVersion might be.
func (d *Doc) notAnObject() error {
	missing := "apiVersion and kind are"
	switch {
	case d.Kind != "":
		missing = "apiVersion is"
	case d.APIVersion != "":
		missing = "kind is"
	}
	return errors.New(noObject(missing, d.Object) + ": correct it, or leave the file out with .fleetignore")
}

// foreign says of a map without kind and apiVersion what it is not.
func foreign(object map[string]any) string {
	return noObject("apiVersion and kind are", object)
}

func noObject(missing string, object map[string]any) string {
	return fmt.Sprintf("this is no Kubernetes object, %s missing (it has %s)", missing, fieldNames(object))
}

// fieldNames lists the first fields of a map for a message.
func fieldNames(object map[string]any) string {
	const most = 4
	keys := sortedKeys(object)
	if len(keys) == 0 {
		return "no fields"
	}
	names := ""
	for i, key := range keys {
		switch {
		case i == most:
			return names + ", …"
		case i > 0:
			names += ", "
		}
		names += key
	}
	return names
}

// text returns a field that must be a string where it is set.
func text(object map[string]any, key string) (string, error) {
	value, ok := object[key]
	if !ok {
		return "", nil
	}
	s, ok := value.(string)
	if !ok {
		return "", fmt.Errorf("%s is %s and not a string: put it in quotes", key, describe(value))
	}
	return s, nil
}

// describe names the type of a value for a message.
func describe(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return fmt.Sprintf("the boolean %v", v)
	case string:
		return "a text"
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	default:
		return fmt.Sprintf("the number %v", v)
	}
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
