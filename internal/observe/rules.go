package observe

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/apply"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Rules are the differences that a bundle's author does not want to hear of.
type Rules struct {
	// Patches are the bundle's diff.comparePatches.
	Patches []fleet.ComparePatch
	// Conditions are its ignore.conditions.
	Conditions []map[string]string
	// Jobs is true where a Job is ready only when it is complete.
	Jobs bool
}

// keep returns the differences of an object that no rule takes out.
func (r Rules) keep(ref apply.Ref, fields []field) []field {
	for _, p := range r.Patches {
		if !selects(p, ref) {
			continue
		}
		fields = slices.DeleteFunc(fields, func(f field) bool { return ignoresField(p, f.pointer) })
	}
	return fields
}

// mayBeMissing tells whether a rule accepts that an object is not there.
func (r Rules) mayBeMissing(ref apply.Ref) bool {
	for _, p := range r.Patches {
		if slices.ContainsFunc(p.Operations, func(o fleet.Operation) bool { return o.Op == "ignore" }) &&
			p.Namespace == ref.Namespace && kindMatches(p, ref) && nameMatches(p.Name, ref.Name) {
			return true
		}
	}
	return false
}

func selects(p fleet.ComparePatch, ref apply.Ref) bool {
	return kindMatches(p, ref) && (p.Name == "" || p.Name == ref.Name) && (p.Namespace == "" || p.Namespace == ref.Namespace)
}

// kindMatches compares kind and group; both may be globs.
func kindMatches(p fleet.ComparePatch, ref apply.Ref) bool {
	group, _, found := strings.Cut(p.APIVersion, "/")
	if !found {
		group = ""
	}
	return glob(p.Kind, ref.Kind) && (p.APIVersion == "" || glob(group, ref.Group))
}

func glob(pattern, text string) bool {
	ok, err := path.Match(pattern, text)
	return pattern == text || err == nil && ok
}

func nameMatches(pattern, name string) bool {
	if pattern == "" || pattern == name {
		return true
	}
	re, err := regexp.Compile("^(?:" + pattern + ")$")
	return err == nil && re.MatchString(name)
}

// ignoresField tells whether a difference lies at or below a pointer that the
// rule names, or in what one of its operations changes.
func ignoresField(p fleet.ComparePatch, pointer string) bool {
	for _, ignored := range p.JsonPointers {
		if within(pointer, ignored) {
			return true
		}
	}
	for _, op := range p.Operations {
		if (op.Op == "remove" || op.Op == "replace" || op.Op == "add") && within(pointer, op.Path) {
			return true
		}
	}
	return false
}

func within(pointer, parent string) bool {
	return pointer == parent || strings.HasPrefix(pointer, strings.TrimSuffix(parent, "/")+"/")
}
