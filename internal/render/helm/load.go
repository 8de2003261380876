package helm

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source"
)

// Reasons of the errors of this package, for conditions and events.
const (
	// ReasonChart says that the chart itself is not valid.
	ReasonChart = "InvalidChart"
	// ReasonValues says that the values do not fit the chart.
	ReasonValues = "InvalidValues"
	// ReasonTemplate says that a template failed.
	ReasonTemplate = "TemplateFailed"
)

// loaded is a chart and what is known of its templates. It is shared by
// renders and never changed.
type loaded struct {
	chart    *chart.Chart
	calls    *callGraph
	warnings []fault.Note
}

// load returns the chart of in, from memory where it was seen before.
func (r *Renderer) load(in Input) (*loaded, error) {
	if known, ok := r.charts.Get(in.Digest); ok && in.Digest != "" {
		return known, nil
	}
	c, err := loader.LoadFiles(buffered(in.Files))
	if err != nil {
		return nil, loadError(in.Dir, err)
	}
	sortDependencies(c)
	fresh := &loaded{chart: c, warnings: dropRemoteSchemas(c)}
	if c.Metadata.Deprecated {
		fresh.warnings = append(fresh.warnings, fault.Note{Message: fmt.Sprintf("the chart %s is deprecated", c.Name())})
	}
	fresh.calls = newCallGraph(c)
	if in.Digest != "" {
		r.charts.Put(in.Digest, fresh, 2*size(in.Files))
	}
	return fresh, nil
}

func loadError(dir string, err error) error {
	return fault.Stall(ReasonChart, fmt.Errorf("the chart in %s cannot be loaded: %w", shown(dir), err))
}

// shown writes a directory of the bundle for a message.
func shown(dir string) string {
	if dir == "" || dir == "." {
		return "the bundle's directory"
	}
	return dir
}

// LoadArchive unpacks a packaged chart into its files.
func LoadArchive(name string, data []byte) ([]source.File, error) {
	files, err := loader.LoadArchiveFiles(bytes.NewReader(data))
	if err != nil {
		return nil, fault.Stall(ReasonChart, fmt.Errorf("%s cannot be unpacked as a chart: %w", name, err))
	}
	out := make([]source.File, len(files))
	for i, f := range files {
		out[i] = source.File{Path: f.Name, Data: f.Data}
	}
	return out, nil
}

// buffered returns files as the loader wants them: it changes their names.
func buffered(files []source.File) []*loader.BufferedFile {
	out := make([]*loader.BufferedFile, len(files))
	for i, f := range files {
		out[i] = &loader.BufferedFile{Name: f.Path, Data: f.Data}
	}
	return out
}

func size(files []source.File) int {
	total := 0
	for _, f := range files {
		total += len(f.Data)
	}
	return total
}

// sortDependencies gives the sub-charts an order; the loader has none.
func sortDependencies(c *chart.Chart) {
	deps := c.Dependencies()
	slices.SortFunc(deps, func(a, b *chart.Chart) int { return strings.Compare(a.Name(), b.Name()) })
	for _, dep := range deps {
		sortDependencies(dep)
	}
}

// clone copies what Helm changes during a render: metadata, values and the
// tree of dependencies. Templates and files are shared.
func clone(c *chart.Chart) *chart.Chart {
	metadata := *c.Metadata
	metadata.Dependencies = nil
	for _, dep := range c.Metadata.Dependencies {
		own := *dep
		own.ImportValues = slices.Clone(dep.ImportValues)
		metadata.Dependencies = append(metadata.Dependencies, &own)
	}
	out := &chart.Chart{
		Metadata: &metadata, Lock: c.Lock, Templates: c.Templates,
		Values: copyValues(c.Values), Schema: c.Schema, Files: c.Files,
	}
	for _, dep := range c.Dependencies() {
		out.AddDependency(clone(dep))
	}
	return out
}
