package main

import (
	"slices"
	"strings"
)

const preamble = `# API reference

<!-- Generated from the custom resource definitions by make generate. Do not edit. -->

All kinds are of the API group ` + "`fleet.cattle.io/v1alpha1`" + `. Manifests written for Rancher Fleet 0.16 apply unchanged; fields that only Flotilla has
are marked **Flotilla**, and are optional. ` + "`[]`" + ` stands for an entry of a list.

`

// page is a Markdown page that is being written.
type page struct {
	strings.Builder
	shared []shared
}

// render writes the reference of all kinds.
func render(kinds []definition) (string, error) {
	structures, err := resolve(kinds)
	if err != nil {
		return "", err
	}
	p := &page{shared: structures}
	p.WriteString(preamble)
	p.overview(kinds)
	for _, kind := range kinds {
		p.kind(kind)
	}
	p.WriteString("# Structures that recur\n\n")
	for _, s := range structures {
		if s.anchor == "" {
			p.structure(s)
		}
	}
	return strings.TrimRight(p.String(), "\n") + "\n", nil
}

// heading writes paragraphs, the first of them a heading.
func (p *page) heading(paragraphs ...string) {
	p.WriteString(strings.Join(paragraphs, "\n\n") + "\n\n")
}

// head begins a table.
func (p *page) head(columns ...string) {
	p.row(columns...)
	p.WriteString(strings.Repeat("|---", len(columns)) + "|\n")
}

// row writes a row of a table.
func (p *page) row(cells ...string) {
	p.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func (p *page) overview(kinds []definition) {
	p.head("Kind", "Scope", "What it is", "`kubectl get` shows")
	for _, d := range kinds {
		name := d.Spec.Names.Kind
		p.row("["+name+"](#"+strings.ToLower(name)+")", string(d.Spec.Scope), firstSentence(rootOf(d).Description), columnNames(d))
	}
	p.WriteString("\n")
}

func columnNames(d definition) string {
	names := []string{"Name"}
	for _, c := range d.Spec.Versions[0].AdditionalPrinterColumns {
		names = append(names, c.Name)
	}
	if len(names) == 1 {
		names = append(names, "Age")
	}
	return strings.Join(names, ", ")
}

func (p *page) kind(d definition) {
	p.heading("## "+d.Spec.Names.Kind, oneLine(rootOf(d).Description))
	p.columns(d)
	root := rootOf(d).DeepCopy()
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		delete(root.Properties, name)
	}
	spec, hasSpec := take(root, "spec")
	status, hasStatus := take(root, "status")
	if len(root.Properties) > 0 {
		p.section("fields beside metadata", root)
	}
	if hasSpec {
		p.section("spec", spec)
	}
	if hasStatus {
		p.section("status", status)
	}
}

// take removes a field from s and returns it.
func take(s *schema, name string) (*schema, bool) {
	property, ok := s.Properties[name]
	delete(s.Properties, name)
	return &property, ok
}

func (p *page) columns(d definition) {
	columns := d.Spec.Versions[0].AdditionalPrinterColumns
	if len(columns) == 0 {
		return
	}
	p.head("Column", "Field")
	for _, c := range columns {
		p.row(c.Name, "`"+cell(c.JSONPath)+"`")
	}
	p.WriteString("\n")
}

func (p *page) structure(s shared) {
	p.heading("## "+s.title, oneLine(s.schema.Description))
	p.table(s.schema, s.title)
}

func (p *page) section(title string, s *schema) {
	p.heading("### " + title)
	p.table(s, "")
}

// table writes the fields of s and of all objects below it. The structure of
// the title self is not referred to, but written out.
func (p *page) table(s *schema, self string) {
	p.head("Field", "Type", "Default", "Description")
	p.fields("", s, self)
	p.WriteString("\n")
}

func (p *page) fields(prefix string, s *schema, self string) {
	names := sortedFields(s)
	lent := slices.IndexFunc(p.shared, func(r shared) bool { return r.title != self && r.within(s) })
	if lent >= 0 {
		r := p.shared[lent]
		p.row(prefix+"…", r.link(), "", "All fields of the "+r.noun()+".")
		names = r.without(s)
	}
	for _, name := range names {
		property := s.Properties[name]
		required := slices.Contains(s.Required, name)
		p.field(prefix+name, &property, required)
	}
}

func (p *page) field(path string, s *schema, required bool) {
	inner, suffix := innermost(s)
	reference := p.reference(inner)
	kind := typeName(s, reference)
	p.row("`"+path+"`", kind, defaultOf(s, required), description(s))
	if reference == "" {
		p.fields(path+suffix+".", inner, "")
	}
}

// reference links to the shared structure that s is, if any.
func (p *page) reference(s *schema) string {
	for _, r := range p.shared {
		if r.sameAs(s) {
			return r.link()
		}
	}
	return ""
}
