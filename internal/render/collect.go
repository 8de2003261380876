package render

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/digest"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/hook"
	"github.com/flotilla-sh/flotilla/internal/names"
	"github.com/flotilla-sh/flotilla/internal/render/helm"
	"github.com/flotilla-sh/flotilla/internal/render/kustomize"
	"github.com/flotilla-sh/flotilla/internal/render/manifest"
	"github.com/flotilla-sh/flotilla/internal/render/raw"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// maxRelease is Helm's limit for the name of a release.
const maxRelease = 53

// renderChart adds the objects of a chart.
func (b *build) renderChart(ctx context.Context, chart *chartFiles) error {
	in := b.helmInput(chart)
	out, err := b.charts.Render(ctx, in)
	if out != nil {
		b.result.Lookups = append(b.result.Lookups, out.Lookups...)
	}
	if err != nil || len(b.result.Lookups) > 0 {
		return err
	}
	b.result.NeedsCluster = out.NeedsCluster
	b.result.Warnings = append(b.result.Warnings, out.Warnings...)
	return b.takeChart(ctx, in.Digest, out)
}

// takeChart adds the objects that a chart rendered to.
func (b *build) takeChart(ctx context.Context, digest string, out *helm.Output) error {
	var errs []error
	for _, file := range out.CRDs {
		// Megabytes that no value changes need not be digested each time.
		parsed, err := b.texts.ParseAs(digest+"/"+file.Name, file.Text)
		errs = append(errs, b.take(file.Name, parsed, onlyObjects(parsed, err), b.addCRD))
	}
	for _, file := range out.Files {
		parsed, err := b.texts.Parse(file.Text)
		err = onlyObjects(parsed, err)
		if problems, ok := errors.AsType[manifest.Problems](err); ok {
			errs = append(errs, renderedErrors(file, problems)...)
			continue
		}
		errs = append(errs, b.take(file.Name, parsed, err, b.addRendered))
	}
	return cmp.Or(fault.Stall(ReasonManifest, joined(errs)), ctx.Err())
}

func (b *build) helmInput(chart *chartFiles) helm.Input {
	options := b.req.Options.Helm
	if options == nil {
		options = &fleet.HelmOptions{}
	}
	in := helm.Input{
		Files: chart.files, Dir: chart.dir, Digest: b.chartDigest(chart),
		ReleaseName: options.ReleaseName, Namespace: releaseNamespace(&b.req.Options),
		Capabilities: b.cluster, OnCluster: b.req.OnCluster, Answers: b.req.Lookups,
		DisableDNS: options.DisableDNS, SkipSchemaValidation: options.SkipSchemaValidation,
	}
	if in.ReleaseName == "" {
		in.ReleaseName = names.Limit(b.req.Bundle, maxRelease)
	}
	if options.Values != nil {
		in.Values = options.Values.Data
	}
	return in
}

// chartDigest identifies a chart. An overlay changes the files, and a
// synthesized chart carries the commit.
func (b *build) chartDigest(chart *chartFiles) string {
	extra := ""
	if chart.synthesized {
		extra = b.req.Bundle + "\n" + b.req.Commit
	}
	overlaid := strings.Join(overlays(&b.req.Options), "\n")
	return digest.Of([]byte(SourceDigest(b.req)), []byte(chart.dir), []byte(overlaid), []byte(extra))
}

// renderedErrors say where a template rendered to what is no object: by its
// own line where that can be told, else by the line of its output alone.
func renderedErrors(file helm.File, problems manifest.Problems) []error {
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = fault.At(file.Name, templateLine(file, p.Line), fmt.Errorf(
			"%s, in line %d of what it renders to: correct the template, or the values that it uses", p.Message, p.Line))
	}
	return errs
}

// templateLine finds the line of a template that a line of its output comes
// from: the only one with the same key. It returns 0 where there is none, or
// are several.
func templateLine(file helm.File, outputLine int) int {
	output := strings.Split(string(file.Text), "\n")
	if outputLine > len(output) {
		return 0
	}
	key, _, ok := strings.Cut(strings.TrimSpace(output[outputLine-1]), ":")
	if !ok {
		return 0
	}
	found := 0
	for i, line := range strings.Split(string(file.Template), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), key+":") {
			if found > 0 {
				return 0
			}
			found = i + 1
		}
	}
	return found
}

// readRaw adds the objects of plain YAML files, and of the templates among
// them.
func (b *build) readRaw(ctx context.Context) error {
	var errs []error
	for _, file := range raw.Manifests(b.files) {
		if kustomize.IsKustomization(file.Path) {
			b.result.Warnings = append(b.result.Warnings, fault.Note{File: file.Path, Message: fmt.Sprintf("it is left out: it is a kustomization, and the bundle is not built with Kustomize; the files that it names are deployed as they are. Set kustomize.dir to %s, or leave the directory out with .fleetignore", path.Dir(file.Path))})
			continue
		}
		parsed, err := b.texts.Parse(file.Data)
		errs = append(errs, b.take(file.Path, parsed, err, b.addRaw))
		if err != nil {
			continue
		}
		for _, foreign := range parsed.Foreign {
			b.result.Warnings = append(b.result.Warnings, fault.Note{File: file.Path, Line: foreign.Line, Message: "it is left out: " + foreign.Message + "; leave the file out with .fleetignore to silence this"})
		}
	}
	if err := joined(errs); err != nil {
		return fault.Stall(ReasonManifest, err)
	}
	templates := raw.Templates(b.files)
	if len(templates) == 0 {
		return nil
	}
	return b.renderChart(ctx, &chartFiles{files: raw.Chart(b.req.Bundle, b.req.Commit, templates), synthesized: true})
}

// onlyObjects is the error of a text that must hold objects and nothing else:
// what a template renders to is never anything else on purpose.
func onlyObjects(parsed *manifest.Parsed, err error) error {
	if err != nil || len(parsed.Foreign) == 0 {
		return err
	}
	problems := make(manifest.Problems, len(parsed.Foreign))
	for i := range parsed.Foreign {
		problems[i] = &parsed.Foreign[i]
	}
	return problems
}

// take gives the objects of a parsed text to add.
func (b *build) take(name string, parsed *manifest.Parsed, err error, add func(name string, doc *manifest.Doc)) error {
	if problems, ok := errors.AsType[manifest.Problems](err); ok {
		errs := make([]error, len(problems))
		for i, p := range problems {
			errs[i] = fault.At(name, p.Line, errors.New(p.Message))
		}
		return errors.Join(errs...)
	}
	if err != nil {
		return fault.At(name, 0, err)
	}
	for i := range parsed.Docs {
		add(name, &parsed.Docs[i])
	}
	for _, warning := range parsed.Warnings {
		b.result.Warnings = append(b.result.Warnings, fault.Note{File: name, Line: warning.Line, Message: warning.Message})
	}
	return nil
}

func (b *build) addRaw(name string, doc *manifest.Doc) {
	b.items = append(b.items, item{doc: doc, source: name, line: doc.Line, plain: true})
}

// addCRD adds a definition unless another sub-chart has brought it: Helm keeps
// the first.
func (b *build) addCRD(name string, doc *manifest.Doc) {
	for _, known := range b.items {
		if known.doc.Kind == doc.Kind && known.doc.Name == doc.Name {
			return
		}
	}
	b.items = append(b.items, item{doc: doc, source: name, line: doc.Line, crds: true})
}

// addRendered adds an object of a template.
func (b *build) addRendered(name string, doc *manifest.Doc) {
	b.items = append(b.items, item{doc: doc, source: name})
}

// kustomize replaces the objects found so far by those of a kustomization that
// builds on them. Definitions from a chart's crds directory and hooks pass it
// by, as with Helm's post-renderers.
func (b *build) kustomize(ctx context.Context, found layout) error {
	in := kustomize.Input{Files: b.files, Dir: path.Dir(found.kustomization)}
	if found.chart != nil {
		in.Manifests = []byte{}
	}
	var kept []item
	for _, it := range b.items {
		if _, isHook := hook.Of(it.doc.Annotation); it.crds || isHook {
			kept = append(kept, it)
			continue
		}
		in.Manifests = append(append(append(in.Manifests, "---\n"...), it.doc.JSON...), '\n')
	}
	objects, err := b.builds.Build(ctx, in)
	if err != nil {
		return err
	}
	b.items = kept
	for _, object := range objects {
		parsed, err := manifest.FromObject(object)
		if err := onlyObjects(parsed, err); err != nil {
			return fault.Stall(ReasonManifest, fault.In(found.kustomization, 0, fmt.Errorf("%s builds something that cannot be applied: %w", found.kustomization, err)))
		}
		for i := range parsed.Docs {
			b.items = append(b.items, item{doc: &parsed.Docs[i], source: found.kustomization, plain: true})
		}
	}
	return nil
}
