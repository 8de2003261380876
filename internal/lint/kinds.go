package lint

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/hook"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/pkg/fleetyaml"
)

// kinds checks objects of Kubernetes' own kinds by the schema that server-side
// apply uses, with its own code: fields that do not exist, and entries of a list
// that have one key between them, are refused by the API server.
type kinds struct {
	scheme    *runtime.Scheme
	converter managedfields.TypeConverter
}

// newKinds has a scheme of its own: libraries add kinds to the shared one that
// the schemas know nothing of.
func newKinds() *kinds {
	own := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(own))
	return &kinds{scheme: own, converter: applyconfigurations.NewTypeConverter(own)}
}

// check returns what is wrong with an object. file reads a file of the bundle.
func (k *kinds) check(object *render.Object, file func(string) []byte) []fault.Note {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(object.JSON); err != nil {
		return nil // lists, and what else is no object, are refused before
	}
	known, err := k.scheme.New(u.GroupVersionKind())
	if err != nil {
		return nil
	}
	source, line := object.Place()
	lines := linesOf(file(source), line)
	var notes []fault.Note
	for _, p := range k.problems(u, reflect.TypeOf(known)) {
		at := parsePath(p.Path)
		message := fmt.Sprintf("%s %s: %s: %s: the API server refuses it", object.Kind, object.Name, strings.TrimPrefix(p.Path, "."), p.ErrorMessage)
		if name, fields := unknown(reflect.TypeOf(known), at); name != "" {
			message = fmt.Sprintf("%s %s: unknown field %q: the API server refuses it", object.Kind, object.Name, strings.TrimPrefix(p.Path, "."))
			if guess := fleetyaml.Nearest(name, fields); guess != "" {
				message += fmt.Sprintf("; did you mean %q?", guess)
			}
		}
		notes = append(notes, fault.Note{File: source, Line: lines.of(at, line), Message: message})
	}
	return notes
}

// problems returns all that the schema says of an object. The schema stops at
// the first unknown field, so that is taken out, and the object looked at again.
func (k *kinds) problems(u *unstructured.Unstructured, t reflect.Type) []typed.ValidationError {
	var all []typed.ValidationError
	var options []typed.ValidationOptions
	const most = 20
	for range most {
		_, err := k.converter.ObjectToTyped(u, options...)
		found, _ := errors.AsType[typed.ValidationErrors](err)
		again := false
		for _, p := range found {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
			switch name, _ := unknown(t, parsePath(p.Path)); {
			case name != "":
				again = remove(u.Object, parsePath(p.Path)) || again
			case len(options) == 0:
				options, again = append(options, typed.AllowDuplicates), true
			}
		}
		if !again {
			break
		}
	}
	return all
}

// remove takes a field out of an object.
func remove(value any, path []step) bool {
	for i, s := range path {
		switch v := value.(type) {
		case map[string]any:
			if _, ok := v[s.name]; ok && i == len(path)-1 {
				delete(v, s.name)
				return true
			}
			value = v[s.name]
		case []any:
			value = s.entry(v)
		}
	}
	return false
}

// unknown returns the step of a path that the type does not have, and what it
// has instead.
func unknown(t reflect.Type, path []step) (string, []string) {
	for _, s := range path {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map && s.name == "" {
			t = t.Elem()
		}
		switch {
		case s.name == "":
		case t.Kind() == reflect.Map:
			t = t.Elem()
		case t.Kind() != reflect.Struct:
			return "", nil
		default:
			fields := fieldsOf(t)
			below, ok := fields[s.name]
			if !ok {
				var names []string
				for name := range fields {
					names = append(names, name)
				}
				return s.name, names
			}
			t = below
		}
	}
	return "", nil
}

// fieldsOf returns the fields of a struct by their name in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && f.Anonymous || strings.Contains(options, "inline"):
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			for name, t := range fieldsOf(inner) {
				fields[name] = t
			}
		default:
			fields[name] = f.Type
		}
	}
	return fields
}

// draftFile reads the files of a bundle.
func draftFile(draft *bundle.Draft) func(string) []byte {
	return func(name string) []byte {
		for i := range draft.Files {
			if draft.Files[i].Path == name {
				return draft.Files[i].Data
			}
		}
		return nil
	}
}

func isHook(object *render.Object) bool {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(object.JSON); err != nil {
		return false
	}
	_, is := hook.Of(func(name string) string { return u.GetAnnotations()[name] })
	return is
}

func groupOf(apiVersion string) string {
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return ""
	}
	return group
}
