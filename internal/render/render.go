package render

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render/helm"
	"github.com/flotilla-sh/flotilla/internal/render/kustomize"
	"github.com/flotilla-sh/flotilla/internal/render/manifest"
	"github.com/flotilla-sh/flotilla/internal/render/raw"
)

// What one renderer remembers: loaded charts, and what texts hold.
const (
	chartRoom = 64 << 20
	textRoom  = 128 << 20
)

// inProcess renders in the calling process. A template that never ends never
// returns: package worker guards against that.
type inProcess struct {
	charts *helm.Renderer
	texts  *manifest.Reader
	builds *kustomize.Builder
}

// New returns a Renderer that renders in the calling process.
func New() Renderer {
	texts := manifest.NewReader(textRoom)
	return &inProcess{charts: helm.New(chartRoom, texts), texts: texts, builds: &kustomize.Builder{}}
}

// Render implements Renderer.
func (r *inProcess) Render(ctx context.Context, req Request) (*Result, error) {
	b := &build{inProcess: r, req: &req, cluster: newCluster(&req)}
	err := b.run(ctx)
	if missing := b.result.Lookups; len(missing) > 0 {
		// Whatever came of it came of answers that are not known yet.
		return &Result{Lookups: missing}, nil
	}
	if err != nil {
		return nil, &Failure{Asked: b.cluster.questions(), Err: err}
	}
	return &b.result, nil
}

// build is one render on its way.
type build struct {
	*inProcess
	req     *Request
	files   []sourceFile
	cluster *cluster
	items   []item
	result  Result
}

// item is an object that was found.
type item struct {
	doc    *manifest.Doc
	source string
	crds   bool // it comes from a chart's crds directory
	plain  bool // it is plain YAML, or built by Kustomize
	line   int  // in source; 0 where it is rendered
}

// at gives an error the place of the object.
func (i *item) at(err error) error { return fault.At(i.source, i.line, err) }

// place is the source with the line.
func (i *item) place() string {
	if i.line == 0 {
		return i.source
	}
	return fmt.Sprintf("%s:%d", i.source, i.line)
}

func (i *item) note(message string) fault.Note {
	return fault.Note{File: i.source, Line: i.line, Message: message}
}

// maxProblems is how many problems of one bundle are told.
const maxProblems = 50

// joined makes one error of all problems.
func joined(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if more := len(errs) - maxProblems; more > 0 {
		errs = append(errs[:maxProblems], fmt.Errorf("and %d more problems", more))
	}
	return errors.Join(errs...)
}

func (b *build) run(ctx context.Context) error {
	var err error
	if b.files, err = raw.Overlay(b.req.Files, overlays(&b.req.Options)); err != nil {
		return err
	}
	found, err := detect(b.files, &b.req.Options)
	if err != nil {
		return err
	}
	if err := b.collect(ctx, found); err != nil {
		return err
	}
	if b.req.Options.TemplateManifests {
		if err := b.fill(found); err != nil {
			return err
		}
	}
	return b.finish()
}

// collect finds the objects of the bundle as its layout says.
func (b *build) collect(ctx context.Context, found layout) error {
	var err error
	switch {
	case found.chart != nil:
		err = b.renderChart(ctx, found.chart)
	case found.kustomization == "":
		err = b.readRaw(ctx)
	}
	if err != nil || found.kustomization == "" {
		return err
	}
	return b.kustomize(ctx, found)
}
