package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/hook"
	"github.com/flotilla-sh/flotilla/internal/render/manifest"
)

// finish makes the result of the objects that were found.
func (b *build) finish() error {
	rules := namespacingOf(&b.req.Options)
	defined := b.definedScopes()
	objects := make([]Object, 0, len(b.items))
	var errs []error
	for _, it := range b.items {
		if !b.reachesCluster(it) {
			continue
		}
		object, err := b.object(it, rules, defined)
		objects, errs = append(objects, object), append(errs, err)
	}
	objects = append(objects, b.req.Copies...)
	sortObjects(objects)
	if err := joined(append(errs, duplicates(objects)...)); err != nil {
		return fault.Stall(ReasonObjects, err)
	}
	b.result.Objects = objects
	b.result.Asked = b.cluster.questions()
	slices.Sort(b.result.UnknownScope)
	b.result.UnknownScope = slices.Compact(b.result.UnknownScope)
	return nil
}

// reachesCluster tells whether an object is more than a hook that never runs.
func (b *build) reachesCluster(it item) bool {
	h, isHook := hook.Of(it.doc.Annotation)
	if len(h.Unknown) > 0 {
		b.result.Warnings = append(b.result.Warnings, it.note(fmt.Sprintf("%s %s is a hook of the unknown event %s, and never runs",
			it.doc.Kind, it.doc.Name, strings.Join(h.Unknown, ", "))))
	}
	return !isHook || len(h.Events) > 0
}

// object gives one found object its namespace.
func (b *build) object(it item, rules namespacing, defined map[string]Scope) (Object, error) {
	doc := it.doc
	out := Object{
		JSON: doc.JSON, Source: it.place(),
		APIVersion: doc.APIVersion, Kind: doc.Kind, Namespace: doc.Namespace, Name: doc.Name,
		hook: doc.Annotation(hook.Annotation),
	}
	if err := repeatedKey(doc.APIVersion, doc.Kind, doc.Object); err != nil {
		return out, it.at(fmt.Errorf("%s: %w", describeObject(&out), err))
	}
	scope := b.scope(doc, rules, defined)
	if !rules.allows(scope) && !it.crds {
		return out, it.at(rules.refusal(doc.Kind + " " + doc.Name))
	}
	namespace, known := rules.of(scope, doc.Namespace)
	if !known {
		b.result.UnknownScope = append(b.result.UnknownScope, doc.APIVersion+"/"+doc.Kind)
		return out, nil
	}
	if namespace == doc.Namespace {
		return out, nil
	}
	text, err := manifest.Canonical(inNamespace(doc.Object, namespace))
	if err != nil {
		return out, it.at(err)
	}
	out.JSON, out.Namespace = text, namespace
	return out, nil
}

// scope finds out whether an object is namespaced: from the built-in kinds,
// the bundle's own definitions, and last from the cluster, so that no question
// is asked whose answer does not matter.
func (b *build) scope(doc *manifest.Doc, rules namespacing, defined map[string]Scope) Scope {
	if scope := builtinScope(doc.APIVersion, doc.Kind); scope != UnknownScope {
		return scope
	}
	key := groupKind(doc.APIVersion, doc.Kind)
	if scope, ok := defined[key]; ok {
		return scope
	}
	if doc.Namespace != "" && rules.force == "" {
		return NamespaceScope // its manifest says so, and nothing would change
	}
	return scopeOf(b.cluster.ask(askScope + key))
}

// definedScopes returns the scopes of the kinds that the bundle itself defines.
func (b *build) definedScopes() map[string]Scope {
	scopes := map[string]Scope{}
	for _, it := range b.items {
		if it.doc.Kind != "CustomResourceDefinition" {
			continue
		}
		spec, _ := it.doc.Object["spec"].(map[string]any)
		kinds, _ := spec["names"].(map[string]any)
		group, _ := spec["group"].(string)
		kind, _ := kinds["kind"].(string)
		scope, _ := spec["scope"].(string)
		scopes[group+"/"+kind] = scopeOf(scope)
	}
	return scopes
}

// duplicates finds manifests for one object in sorted objects. Which one
// would win depended on the order. Hooks come and go: one may have the name of
// an object, or of the hook of another event.
func duplicates(objects []Object) (errs []error) {
	type id struct{ kind, namespace, name, hook string }
	seen := make(map[id]string, len(objects))
	for _, o := range objects {
		key := id{groupKind(o.APIVersion, o.Kind), o.Namespace, o.Name, o.hook}
		first, ok := seen[key]
		if !ok {
			seen[key] = o.Source
			continue
		}
		where := first + " and in " + o.Source
		if first == o.Source {
			where = first + " twice"
		}
		file, line := o.Place()
		errs = append(errs, fault.In(file, line, fmt.Errorf("%s is in %s: remove or rename one of them", describeObject(&o), where)))
	}
	return errs
}

// describeObject names an object for a message.
func describeObject(o *Object) string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}
