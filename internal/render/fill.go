package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render/manifest"
	"github.com/flotilla-sh/flotilla/internal/templating"
)

// ReasonFill says that the templates of plain YAML cannot be filled in.
const ReasonFill = "ManifestTemplateFailed"

// fill fills the templates of plain YAML, and of what Kustomize built, in. What
// they read of the cluster is asked as a chart asks for capabilities, so that
// clusters that differ elsewhere share a render.
func (b *build) fill(found layout) error {
	if found.chart != nil && !found.chart.synthesized && found.kustomization == "" {
		b.result.Warnings = append(b.result.Warnings, fault.Note{Message: "templateManifests has no effect on a chart: use helm.values and helm.templateValues"})
		return nil
	}
	if b.cluster.known == nil {
		return errors.New("templateManifests is set, and nothing is known of the cluster to fill in")
	}
	compiler := templating.ForObjects()
	var errs []error
	for i := range b.items {
		if it := &b.items[i]; it.plain && templating.InObject(it.doc.Object) && it.doc.Annotation(templating.Annotation) != "false" {
			errs = append(errs, b.fillItem(compiler, it))
		}
	}
	for _, read := range compiler.Reads() {
		b.cluster.ask(templateQuestion(read))
	}
	if err := joined(errs); err != nil {
		// The message names the cluster, and is for no other.
		for _, whole := range templating.Roots() {
			b.cluster.ask(templateQuestion(whole))
		}
		return fault.Stall(ReasonFill, err)
	}
	return nil
}

// fillItem replaces an object by what it is on the cluster.
func (b *build) fillItem(compiler *templating.Compiler, it *item) error {
	eval, err := compiler.Value(it.doc.Object, "")
	if err != nil {
		return b.fillError(it, err)
	}
	filled, err := eval(b.cluster.known)
	if err != nil {
		return b.fillError(it, err)
	}
	parsed, err := manifest.FromObject(filled.(map[string]any))
	if err := onlyObjects(parsed, err); err != nil {
		return it.at(fmt.Errorf("filled in, this cannot be applied: %w", err))
	}
	it.doc = &parsed.Docs[0]
	return nil
}

// fillError says in which line of which file a template cannot be filled in.
func (b *build) fillError(it *item, err error) error {
	var errs []error
	for one := range fault.Each(err) {
		file, line := it.source, it.line
		if problem, ok := errors.AsType[*templating.Error](one); ok {
			file, line = b.find(it, problem)
		}
		errs = append(errs, fault.At(file, line, fmt.Errorf("%s %s: %w", it.doc.Kind, it.doc.Name, one)))
	}
	return errors.Join(errs...)
}

// find returns where a template stands. What Kustomize built may come from any
// file.
func (b *build) find(it *item, problem *templating.Error) (file string, line int) {
	if line := lineIn(b.files, it.source, it.line, problem); line > 0 || it.line > 0 {
		return it.source, max(line, it.line)
	}
	for _, file := range b.files {
		if line := lineIn(b.files, file.Path, 1, problem); line > 0 {
			return file.Path, line
		}
	}
	return it.source, 0
}

// lineIn returns the line of a template in a file, at or after first; 0 where
// it is not there.
func lineIn(files []sourceFile, name string, first int, problem *templating.Error) int {
	at := slices.IndexFunc(files, func(f sourceFile) bool { return f.Path == name })
	if at < 0 {
		return 0
	}
	lines := strings.Split(string(files[at].Data), "\n")
	first = min(max(first, 1), len(lines))
	if found := problem.Line(lines[first-1:]); found >= 0 {
		return first + found
	}
	return 0
}
