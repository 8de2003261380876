package helm

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// exactFloat is the smallest whole number that text/template writes with an
// exponent when it is a float: 1e+06.
const exactFloat = 1e6

// prepare computes the values that the templates see.
func (r *run) prepare() error {
	r.chart = clone(r.loaded.chart)
	r.warnings = slices.Clone(r.loaded.warnings)
	if err := r.checkChart(); err != nil {
		return err
	}
	overrides := copyValues(r.in.Values)
	missing := absentDependencies(r.chart)
	if err := chartutil.ProcessDependenciesWithMerge(r.chart, overrides); err != nil {
		return loadError(r.in.Dir, err)
	}
	if err := r.checkDependencies(missing); err != nil {
		return err
	}
	options := chartutil.ReleaseOptions{
		Name: r.in.ReleaseName, Namespace: r.in.Namespace, Revision: 1, IsInstall: true,
	}
	// Helm would fetch what a schema refers to.
	const skipSchemas = true
	values, err := chartutil.ToRenderValuesWithSchemaValidation(r.chart, overrides, options, nil, skipSchemas)
	if err != nil {
		return fault.Stall(ReasonValues, fmt.Errorf("the values of the chart %s cannot be merged: %w", r.chart.Name(), err))
	}
	r.values = values
	if r.in.SkipSchemaValidation {
		return nil
	}
	merged, err := values.Table("Values")
	if err != nil {
		return fault.Stall(ReasonValues, fmt.Errorf("the values of the chart %s cannot be merged: %w", r.chart.Name(), err))
	}
	return valuesError(checkValues(r.chart, merged))
}

// checkChart refuses charts that cannot be installed at all.
func (r *run) checkChart() error {
	metadata := r.chart.Metadata
	if strings.EqualFold(metadata.Type, "library") {
		return fault.Stall(ReasonChart, fmt.Errorf("the chart %s in %s is a library and has nothing to deploy: point helm.chart at a chart that uses it", metadata.Name, shown(r.in.Dir)))
	}
	if metadata.KubeVersion != "" && !r.in.Capabilities.Satisfies(metadata.KubeVersion) {
		return fault.Stall(ReasonChart, fmt.Errorf("the chart %s wants Kubernetes %s and the cluster has %s: upgrade the cluster, or take another version of the chart", metadata.Name, metadata.KubeVersion, r.in.Capabilities.KubeVersion()))
	}
	return nil
}

// absentDependencies returns the declared dependencies whose charts are not in
// the bundle.
func absentDependencies(c *chart.Chart) []*chart.Dependency {
	var absent []*chart.Dependency
	for _, declared := range c.Metadata.Dependencies {
		if !slices.ContainsFunc(c.Dependencies(), func(dep *chart.Chart) bool { return dep.Name() == declared.Name }) {
			absent = append(absent, declared)
		}
	}
	return absent
}

// checkDependencies complains about absent charts that the values enable.
func (r *run) checkDependencies(absent []*chart.Dependency) error {
	var names []string
	for _, dep := range absent {
		if slices.Contains(r.chart.Metadata.Dependencies, dep) {
			names = append(names, strings.TrimSpace(dep.Name+" "+dep.Version))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fault.Stall(ReasonChart, fmt.Errorf("the chart %s depends on %s, which is not in its charts/ directory: run \"helm dependency build\" and commit charts/, or disable it in the values", r.chart.Name(), strings.Join(names, ", ")))
}

// valuesError is of what does not fit a schema, in one line.
func valuesError(wrong []string) error {
	if len(wrong) == 0 {
		return nil
	}
	text := strings.Join(strings.FieldsFunc(strings.Join(wrong, "\n"), func(c rune) bool { return c == '\n' }), " ")
	return fault.Stall(ReasonValues, fmt.Errorf("the values do not fit values.schema.json: %s: correct helm.values", text))
}

// copyValues copies values deeply, with numbers as Helm has them when it reads
// a values file, except that large whole numbers are kept from being written
// with an exponent.
func copyValues(in map[string]any) map[string]any {
	out := make(map[string]any, len(in))
	for key, value := range in {
		out[key] = copyValue(value)
	}
	return out
}

func copyValue(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return copyValues(v)
	case chartutil.Values:
		return copyValues(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = copyValue(v[i])
		}
		return out
	case int:
		return number(float64(v), int64(v))
	case int32:
		return number(float64(v), int64(v))
	case int64:
		return number(float64(v), v)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return number(v, int64(v))
		}
	}
	return value
}

// number chooses the form of a whole number.
func number(asFloat float64, asInt int64) any {
	if math.Abs(asFloat) < exactFloat {
		return asFloat
	}
	return asInt
}
