// Package helm renders Helm charts. It is the only door to Helm: charts are
// loaded from memory, nothing is fetched, no cluster and no file is read, and
// what a chart asks about its cluster is recorded.
package helm

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/flotilla-sh/flotilla/internal/cache"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render/manifest"
	"github.com/flotilla-sh/flotilla/internal/source"
)

// Input is what a render of a chart depends on.
type Input struct {
	// Files are the files of the chart, relative to its directory.
	Files []source.File
	// Digest identifies Files and Dir; the loaded chart is remembered by it.
	Digest string
	// Dir is the chart's directory in the bundle, for messages.
	Dir string
	// ReleaseName and Namespace are what .Release says.
	ReleaseName, Namespace string
	// Values win over those of the chart.
	Values map[string]any
	// Capabilities answers what the chart asks about its cluster.
	Capabilities Capabilities
	// DisableDNS makes getHostByName return nothing.
	DisableDNS bool
	// SkipSchemaValidation does not check values against values.schema.json.
	SkipSchemaValidation bool
	// OnCluster answers lookups from Answers, and does not ask whether the
	// result would be the same elsewhere.
	OnCluster bool
	// Answers are the answers to lookups that are known.
	Answers []Answer
}

// Output is what a chart rendered to.
type Output struct {
	// Files are the rendered templates, sorted by name, notes left out.
	Files []File
	// CRDs are the files of the crds directories, which are no templates.
	CRDs []File
	// NeedsCluster is why only an agent on the cluster can render the chart;
	// what was rendered is then what an empty cluster would get.
	NeedsCluster string
	// Lookups are the lookups without an answer, where OnCluster is set.
	Lookups []Lookup
	// Warnings are for the chart's author.
	Warnings []fault.Note
}

// File is a text that a chart holds or renders to.
type File struct {
	// Name is the file's path in the bundle.
	Name string
	// Text is what it holds, or renders to.
	Text []byte
	// Template is what Text was rendered from; nil where it is no template.
	Template []byte
}

// Renderer renders charts and remembers those that it has loaded.
type Renderer struct {
	charts *cache.LRU[*loaded]
	stable *cache.LRU[struct{}] // texts that are known to be the same in every render
	texts  *manifest.Reader
}

// stableRoom is enough for some ten thousand texts, by their digest.
const stableRoom = 1 << 20

// New returns a Renderer that remembers charts of up to room bytes. It reads
// what templates render to with texts, which its caller reads the same with.
func New(room int, texts *manifest.Reader) *Renderer {
	return &Renderer{charts: cache.New[*loaded](room), stable: cache.New[struct{}](stableRoom), texts: texts}
}

// Render renders a chart as "helm template --include-crds" does. Where lookups
// lack their answer the output tells only those, also beside an error.
func (r *Renderer) Render(ctx context.Context, in Input) (*Output, error) {
	base, err := r.load(in)
	if err != nil {
		return nil, err
	}
	run := &run{Renderer: r, in: in, loaded: base}
	if err := run.prepare(); err != nil {
		return nil, err
	}
	texts, err := run.execute()
	if len(run.missing) > 0 {
		return &Output{Lookups: run.missing}, err
	}
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := &Output{Files: run.files(texts), CRDs: run.crds(), NeedsCluster: run.needsCluster(texts)}
	out.Warnings = run.warnings
	return out, ctx.Err()
}

// run is one render of one chart.
type run struct {
	*Renderer
	in       Input
	loaded   *loaded
	chart    *chart.Chart // a copy of the loaded chart: Helm changes it
	values   chartutil.Values
	lookups  int
	missing  []Lookup
	warnings []fault.Note
}

// notes is the name of what is for the person who installs a chart by hand.
const notes = "NOTES.txt"

// files returns the rendered templates in a stable order.
func (r *run) files(texts map[string]string) []File {
	var files []File
	templates := map[string][]byte{}
	eachTemplate(r.chart, func(name string, text []byte) { templates[name] = text })
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		text := texts[name]
		if strings.HasSuffix(name, notes) || strings.TrimSpace(text) == "" {
			continue
		}
		files = append(files, File{Name: r.path(name), Text: []byte(text), Template: templates[name]})
	}
	return files
}

// eachTemplate calls visit with every template of a chart and its
// dependencies, by the name that Helm gives it.
func eachTemplate(c *chart.Chart, visit func(name string, text []byte)) {
	for _, file := range c.Templates {
		if file != nil {
			visit(path.Join(c.ChartFullPath(), file.Name), file.Data)
		}
	}
	for _, dep := range c.Dependencies() {
		eachTemplate(dep, visit)
	}
}

// crds returns the files of the crds directories of the chart and its enabled
// dependencies.
func (r *run) crds() []File {
	var files []File
	for _, crd := range r.chart.CRDObjects() {
		files = append(files, File{Name: r.path(crd.Filename), Text: crd.File.Data})
	}
	return files
}

// path turns a name that begins with the chart's name, as Helm writes it, into
// a path of the bundle.
func (r *run) path(name string) string { return bundlePath(name, r.loaded.chart.Name(), r.in.Dir) }
