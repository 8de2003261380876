package target

import (
	"errors"
	"maps"
	"slices"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/templating"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// plan is how to get from merged options to those of a cluster. Templates are
// parsed once for all clusters that share the merged options.
type plan struct {
	options fleet.BundleDeploymentOptions
	// values fills the values in; nil where there is nothing to fill in.
	values templating.Eval
	// overlays fill in helm.templateValues, by key.
	overlays map[string]templating.Eval
	compiler *templating.Compiler
	// shared are the options where all clusters have the same.
	shared *fleet.BundleDeploymentOptions
	err    error
}

func newPlan(options fleet.BundleDeploymentOptions, total *templating.Total) *plan {
	p := &plan{options: options}
	if options.Helm != nil {
		helm := *options.Helm
		helm.TimeoutSeconds = max(0, helm.TimeoutSeconds)
		p.options.Helm = &helm
	}
	if needsTemplates(options.Helm) {
		p.compiler = compilerFor(options.Helm)
		p.compiler.CountIn(total)
		p.err = p.compile()
	} else {
		p.shared = &p.options
	}
	return p
}

func needsTemplates(h *fleet.HelmOptions) bool {
	switch {
	case h == nil:
		return false
	case h.DisablePreProcess:
		return h.Values != nil && templating.InLabels(h.Values.Data)
	}
	return len(h.TemplateValues) > 0 || h.Values != nil && templating.InValues(h.Values.Data)
}

// compilerFor returns what fills in: without pre-processing labels alone.
func compilerFor(h *fleet.HelmOptions) *templating.Compiler {
	if h.DisablePreProcess {
		return templating.ForLabels()
	}
	return templating.ForValues()
}

// compile parses all templates. Its error is the same for every cluster.
func (p *plan) compile() error {
	var errs []error
	if values := p.options.Helm.Values; values != nil && templating.InValues(values.Data) {
		var err error
		p.values, err = p.compiler.Value(values.Data, "helm.values")
		errs = append(errs, err)
	}
	p.overlays = map[string]templating.Eval{}
	if p.options.Helm.DisablePreProcess {
		return stalled(errors.Join(errs...))
	}
	for _, key := range slices.Sorted(maps.Keys(p.options.Helm.TemplateValues)) {
		path := "helm.templateValues." + key
		value, err := p.compiler.YAML(p.options.Helm.TemplateValues[key], path)
		errs = append(errs, err)
		p.overlays[key] = value
	}
	return stalled(errors.Join(errs...))
}

// stalled marks errors of templates as for a human to mend.
func stalled(err error) error { return fault.Stall("ValuesTemplateFailed", err) }

// optionsFor returns the options of cluster.
func (p *plan) optionsFor(cluster *Cluster) (*fleet.BundleDeploymentOptions, error) {
	if p.shared != nil {
		return p.shared, nil
	}
	p.compiler.Reset()
	data, err := p.fill(templating.NewScope(cluster.Templating()))
	if p.err != nil && len(templating.Errors(err)) == len(templating.Errors(p.err)) {
		return nil, p.err // nothing else is wrong with this cluster
	}
	if err != nil {
		return nil, stalled(cluster.Wrong(err))
	}
	helm := *p.options.Helm
	helm.TemplateValues = nil
	helm.Values = &fleet.GenericMap{Data: data}
	out := p.options
	out.Helm = &helm
	return &out, nil
}

// fill returns the values for one cluster.
func (p *plan) fill(s *templating.Scope) (map[string]any, error) {
	var data map[string]any
	if values := p.options.Helm.Values; values != nil {
		data = values.Data
	}
	var errs []error
	if p.values != nil {
		filled, err := p.values(s)
		data, _ = filled.(map[string]any)
		errs = append(errs, err)
	}
	over := make(map[string]any, len(p.overlays))
	for _, key := range slices.Sorted(maps.Keys(p.overlays)) {
		value, err := p.overlays[key](s)
		over[key] = value
		errs = append(errs, err)
	}
	return mergeKeys(data, over), errors.Join(errs...)
}
