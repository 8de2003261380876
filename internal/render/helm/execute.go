package helm

import (
	"fmt"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// execute runs the templates.
func (r *run) execute() (map[string]string, error) {
	if r.in.OnCluster {
		return r.executeOnCluster()
	}
	provider := &recordLookups{}
	texts, err := r.render(r.chart, provider)
	if err != nil {
		return nil, r.explain(err)
	}
	r.lookups = provider.made
	return texts, nil
}

// executeOnCluster runs the templates with what the cluster answers.
func (r *run) executeOnCluster() (map[string]string, error) {
	provider := newAnswers(r.in.Answers)
	texts, err := r.render(r.chart, provider)
	r.missing = provider.missing
	if err != nil {
		return nil, r.explain(err)
	}
	return texts, nil
}

// render runs the templates of c with fresh values: templates may change them.
func (r *run) render(c *chart.Chart, provider engine.ClientProvider) (map[string]string, error) {
	values := chartutil.Values{
		"Chart":        r.values["Chart"],
		"Release":      r.values["Release"],
		"Values":       freshValues(r.values["Values"]),
		"Capabilities": r.capabilities(),
	}
	return engine.RenderWithClientProvider(c, values, provider)
}

// freshValues copies merged values; copyValue alone would lose their type.
func freshValues(values any) chartutil.Values {
	switch v := values.(type) {
	case chartutil.Values:
		return copyValues(v)
	case map[string]any:
		return copyValues(v)
	default:
		panic(fmt.Sprintf("helm: values are %T", values))
	}
}
