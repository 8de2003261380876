package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
)

// shared is a structure that is described once and referred to elsewhere.
type shared struct {
	title string
	// kind and path say where the structure is taken from.
	kind, path string
	// inline structures lend their fields to others.
	inline bool
	// anchor is where the structure is described; empty means in a section of
	// its own.
	anchor string
	schema *schema
}

// sharedStructures lists what recurs, the larger before what it holds.
func sharedStructures() []shared {
	return []shared{
		{title: "Spec of a Bundle", kind: "Bundle", path: "spec", inline: true, anchor: "bundle"},
		{title: "Deployment options", kind: "BundleDeployment", path: "spec.options", inline: true},
		{title: "Summary", kind: "Cluster", path: "status.summary"},
		{title: "Resource counts", kind: "Cluster", path: "status.resourceCounts"},
		{title: "Dependency", kind: "Bundle", path: "spec.dependsOn[]"},
		{title: "Modified object", kind: "BundleDeployment", path: "status.modifiedStatus[]"},
		{title: "Object that is not ready", kind: "BundleDeployment", path: "status.nonReadyStatus[]"},
		{title: "Condition", kind: "Cluster", path: "status.conditions[]"},
		{title: "Label selector", kind: "ClusterGroup", path: "spec.selector"},
	}
}

// resolve finds the schemas of the shared structures.
func resolve(kinds []definition) ([]shared, error) {
	all := sharedStructures()
	for i := range all {
		at := slices.IndexFunc(kinds, func(d definition) bool { return d.Spec.Names.Kind == all[i].kind })
		if at < 0 {
			return nil, fmt.Errorf("%s: no kind %s", all[i].title, all[i].kind)
		}
		if all[i].schema = find(rootOf(kinds[at]), all[i].path); all[i].schema == nil {
			return nil, fmt.Errorf("%s: %s has no field %s", all[i].title, all[i].kind, all[i].path)
		}
	}
	return all, nil
}

func rootOf(d definition) *schema { return d.Spec.Versions[0].Schema.OpenAPIV3Schema }

// find follows a path such as spec.dependsOn[].
func find(s *schema, path string) *schema {
	for step := range strings.SplitSeq(path, ".") {
		name, list := strings.CutSuffix(step, "[]")
		property, ok := s.Properties[name]
		if !ok {
			return nil
		}
		s = &property
		if list {
			s = s.Items.Schema
		}
	}
	return s
}

// sameAs tells whether s is the shared structure, whatever its description.
func (r shared) sameAs(s *schema) bool {
	return len(s.Properties) > 0 && equality.Semantic.DeepEqual(s.Properties, r.schema.Properties)
}

// within tells whether s has all fields of the shared structure, and more.
func (r shared) within(s *schema) bool {
	if !r.inline || len(s.Properties) <= len(r.schema.Properties) {
		return false
	}
	for name, property := range r.schema.Properties {
		if !equality.Semantic.DeepEqual(s.Properties[name], property) {
			return false
		}
	}
	return true
}

// without returns the names of the fields of s that are not r's, sorted.
func (r shared) without(s *schema) []string {
	names := slices.Sorted(maps.Keys(s.Properties))
	return slices.DeleteFunc(names, func(name string) bool {
		_, ok := r.schema.Properties[name]
		return ok
	})
}

// noun is the title within a sentence.
func (r shared) noun() string { return strings.ToLower(r.title[:1]) + r.title[1:] }

// link refers to the structure's section.
func (r shared) link() string {
	anchor := r.anchor
	if anchor == "" {
		anchor = strings.ReplaceAll(strings.ToLower(r.title), " ", "-")
	}
	return "[" + r.noun() + "](#" + anchor + ")"
}
