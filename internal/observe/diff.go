package observe

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/fluxcd/pkg/ssa"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// maxFields and maxValue keep what is reported of one object small, and
	// maxPatch what is reported in Fleet's form.
	maxFields = 10
	maxValue  = 200
	maxPatch  = 1024
)

// field is one place where wanted and live differ.
type field struct {
	// path is for people, pointer for programs.
	path, pointer string
	wanted, live  any
	hasWanted     bool
	hasLive       bool
}

// compared returns the part of an object that is compared: all but the status
// and what only the API server sets.
func compared(obj *unstructured.Unstructured) map[string]any {
	out := obj.DeepCopy()
	for _, name := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"} {
		unstructured.RemoveNestedField(out.Object, "metadata", name)
	}
	delete(out.Object, "status")
	return out.Object
}

// differences returns where live is not as the dry run of our apply would make
// it, sorted by path.
func differences(wanted, live map[string]any) []field {
	var out []field
	walk(&out, field{wanted: wanted, live: live, hasWanted: true, hasLive: true})
	return out
}

func walk(out *[]field, f field) {
	if f.hasWanted == f.hasLive && reflect.DeepEqual(f.wanted, f.live) {
		return
	}
	switch wanted := f.wanted.(type) {
	case map[string]any:
		if live, ok := f.live.(map[string]any); ok {
			walkMap(out, f, wanted, live)
			return
		}
	case []any:
		if live, ok := f.live.([]any); ok {
			walkList(out, f, wanted, live)
			return
		}
	}
	*out = append(*out, f)
}

func walkMap(out *[]field, parent field, wanted, live map[string]any) {
	keys := slices.Sorted(maps.Keys(union(wanted, live)))
	for _, key := range keys {
		f := field{path: joined(parent.path, key), pointer: parent.pointer + "/" + escaped(key)}
		f.wanted, f.hasWanted = wanted[key]
		f.live, f.hasLive = live[key]
		if !f.hasWanted || !f.hasLive || !reflect.DeepEqual(f.wanted, f.live) {
			walk(out, f)
		}
	}
}

func union(a, b map[string]any) map[string]bool {
	keys := make(map[string]bool, len(a)+len(b))
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	return keys
}

// walkList compares items by name where all items have one, else by position.
func walkList(out *[]field, parent field, wanted, live []any) {
	w, okWanted := named(wanted)
	l, okLive := named(live)
	if !okWanted || !okLive {
		w, l = numbered(wanted), numbered(live)
	}
	for _, key := range slices.Sorted(maps.Keys(union(w, l))) {
		f := field{path: parent.path + "[" + strings.TrimLeft(key, "0") + "]"}
		if f.path == parent.path+"[]" {
			f.path = parent.path + "[0]"
		}
		f.wanted, f.hasWanted = w[key]
		f.live, f.hasLive = l[key]
		f.pointer = parent.pointer + "/" + strconv.Itoa(position(wanted, live, f))
		if !f.hasWanted || !f.hasLive || !reflect.DeepEqual(f.wanted, f.live) {
			walk(out, f)
		}
	}
}

// named indexes list items by their name; keys get the form name=x.
func named(list []any) (map[string]any, bool) {
	out := make(map[string]any, len(list))
	for _, item := range list {
		m, _ := item.(map[string]any)
		name, ok := m["name"].(string)
		if !ok || out["name="+name] != nil {
			return nil, false
		}
		out["name="+name] = item
	}
	return out, true
}

func numbered(list []any) map[string]any {
	out := make(map[string]any, len(list))
	for i, item := range list {
		out[fmt.Sprintf("%06d", i)] = item
	}
	return out
}

func position(wanted, live []any, f field) int {
	list, item := wanted, f.wanted
	if !f.hasWanted {
		list, item = live, f.live
	}
	return slices.IndexFunc(list, func(other any) bool { return reflect.DeepEqual(other, item) })
}

func joined(path, key string) string {
	if strings.ContainsAny(key, "./[") {
		key = "[" + key + "]"
	} else if path != "" {
		key = "." + key
	}
	return path + key
}

func escaped(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// reported returns fields as they are shown: capped, and short.
func reported(fields []field) []fleet.FieldDrift {
	var out []fleet.FieldDrift
	for _, f := range fields[:min(len(fields), maxFields)] {
		out = append(out, fleet.FieldDrift{Path: f.path, Desired: shown(f.wanted, f.hasWanted), Live: shown(f.live, f.hasLive)})
	}
	return out
}

// hidden takes the place of a value that may be secret.
const hidden = "(hidden: a Secret of the cluster went into it)"

// hide takes the values out of fields that are shown.
func hide(fields []fleet.FieldDrift) {
	for i := range fields {
		for _, value := range []*string{&fields[i].Desired, &fields[i].Live} {
			if *value != "" {
				*value = hidden
			}
		}
	}
}

func shown(value any, present bool) string {
	if !present {
		return ""
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	if len(raw) > maxValue {
		return strings.ToValidUTF8(string(raw[:maxValue]), "") + "…"
	}
	return string(raw)
}

// patchOf returns the merge patch from live to wanted, or nothing where it
// would be long.
func patchOf(wanted, live map[string]any) string {
	from, errFrom := json.Marshal(live)
	to, errTo := json.Marshal(wanted)
	if errFrom != nil || errTo != nil {
		return ""
	}
	patch, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil || len(patch) > maxPatch {
		return ""
	}
	return string(patch)
}

// masked replaces the values of a Secret by asterisks, which still tell
// whether they differ.
func masked(wanted, live *unstructured.Unstructured) error {
	if wanted.GetKind() != "Secret" || wanted.GroupVersionKind().Group != "" {
		return nil
	}
	if err := ssa.SanitizeUnstructuredData(live, wanted); err != nil {
		return fmt.Errorf("hide the values of %s/%s: %w", wanted.GetNamespace(), wanted.GetName(), err)
	}
	const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
	for _, obj := range []*unstructured.Unstructured{wanted, live} {
		unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", lastApplied)
	}
	return nil
}
