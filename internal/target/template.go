package target

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

const (
	leftDelimiter  = "${"
	rightDelimiter = "}"
	// labelPrefix begins a text that stands for the label named by its rest.
	labelPrefix = "global.fleet.clusterLabels."
	// noValue is what text/template prints for nothing at all.
	noValue = "<no value>"
)

// eval returns a part of the values for one cluster.
type eval func(*scope) (any, error)

// scope is what templates know of a cluster.
type scope struct {
	cluster *Cluster
	labels  map[string]string
	data    map[string]any
}

func newScope(cluster *Cluster) *scope {
	labels := templateLabels(cluster.Labels)
	return &scope{cluster: cluster, labels: labels, data: map[string]any{
		"ClusterNamespace":   cluster.Namespace,
		"ClusterName":        cluster.Name,
		"ClusterLabels":      anyMap(labels),
		"ClusterAnnotations": anyMap(cluster.Annotations),
		"ClusterValues":      ownMap(cluster.TemplateValues),
	}}
}

// anyMap makes the maps that the functions get, hasKey and dict work on.
func anyMap(in map[string]string) map[string]any {
	out := make(map[string]any, len(in))
	for key, value := range in {
		out[key] = value
	}
	return out
}

// ownMap copies the values of a cluster, so that set and unset in a template
// change nothing for others.
func ownMap(in map[string]any) map[string]any {
	out := make(map[string]any, len(in))
	for key, value := range in {
		out[key] = own(value)
	}
	return out
}

// own copies a value. Whole numbers become integers, which print as people
// write them: 1000000 and not 1e+06.
func own(value any) any {
	const exact = 1 << 53
	switch v := value.(type) {
	case map[string]any:
		return ownMap(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = own(v[i])
		}
		return out
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < exact {
			return int64(v)
		}
	}
	return value
}

// templateLabels leaves out the labels that are the machinery's own.
func templateLabels(labels map[string]string) map[string]string {
	out := make(map[string]string, len(labels))
	for key, value := range labels {
		own := strings.HasPrefix(key, "fleet.cattle.io/") || strings.HasPrefix(key, "management.cattle.io/")
		foreign := strings.Contains(key, "cattle.io") || strings.Contains(key, "kubectl.kubernetes.io/")
		if own || !foreign {
			out[key] = value
		}
	}
	return out
}

// hasTemplates tells whether value holds anything to fill in.
func hasTemplates(value any) bool {
	switch v := value.(type) {
	case string:
		return strings.Contains(v, leftDelimiter) || strings.HasPrefix(v, labelPrefix)
	case []any:
		return slices.ContainsFunc(v, hasTemplates)
	case map[string]any:
		for key, below := range v {
			if strings.Contains(key, leftDelimiter) || hasTemplates(below) {
				return true
			}
		}
	}
	return false
}

// compiler parses the templates of one plan.
type compiler struct {
	funcs template.FuncMap
	step  parse.Node
}

func newCompiler(b *budget) *compiler {
	c := &compiler{funcs: functions(b)}
	tick := template.Must(c.parse("step", leftDelimiter+" "+stepFunction+" "+rightDelimiter))
	c.step = tick.Root.Nodes[0]
	return c
}

func (c *compiler) parse(name, text string) (*template.Template, error) {
	return template.New(name).Delims(leftDelimiter, rightDelimiter).
		Option("missingkey=error").Funcs(c.funcs).Parse(text)
}

// value compiles any part of the values; path is where it stands.
func (c *compiler) value(value any, path string) (eval, error) {
	if !hasTemplates(value) {
		return constant(value), nil
	}
	switch v := value.(type) {
	case string:
		if label, ok := strings.CutPrefix(v, labelPrefix); ok {
			return func(s *scope) (any, error) { return s.labels[label], nil }, nil
		}
		return c.text(v, path)
	case []any:
		return c.list(v, path)
	case map[string]any:
		return c.object(v, path)
	}
	return constant(value), nil
}

func constant(value any) eval {
	return func(*scope) (any, error) { return value, nil }
}

func (c *compiler) list(in []any, path string) (eval, error) {
	items := make([]eval, len(in))
	var errs []error
	for i, item := range in {
		var err error
		items[i], err = c.value(item, fmt.Sprintf("%s[%d]", path, i))
		errs = append(errs, err)
	}
	return func(s *scope) (any, error) {
		out := make([]any, len(items))
		var errs []error
		for i, item := range items {
			value, err := item(s)
			out[i] = value
			errs = append(errs, err)
		}
		return out, errors.Join(errs...)
	}, errors.Join(errs...)
}

type entry struct{ key, value eval }

func (c *compiler) object(in map[string]any, path string) (eval, error) {
	var entries []entry
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(in)) {
		below := path + "." + key
		keyEval, keyErr := constant(key), error(nil)
		if strings.Contains(key, leftDelimiter) {
			keyEval, keyErr = c.text(key, below)
		}
		valueEval, err := c.value(in[key], below)
		entries = append(entries, entry{keyEval, valueEval})
		errs = append(errs, keyErr, err)
	}
	return func(s *scope) (any, error) { return fillObject(entries, path, s) }, errors.Join(errs...)
}

func fillObject(entries []entry, path string, s *scope) (any, error) {
	out := make(map[string]any, len(entries))
	var errs []error
	for _, e := range entries {
		key, keyErr := e.key(s)
		value, err := e.value(s)
		errs = append(errs, keyErr, err)
		name, _ := key.(string)
		if _, twice := out[name]; twice && keyErr == nil {
			errs = append(errs, fmt.Errorf("%s: two keys become %q", path, name))
		}
		out[name] = value
	}
	return out, errors.Join(errs...)
}

// text compiles one template.
func (c *compiler) text(text, path string) (eval, error) {
	if !strings.Contains(text, leftDelimiter) {
		return constant(text), nil
	}
	parsed, err := c.parse(path, text)
	if err != nil {
		return nil, fmt.Errorf("%s: %q is not a valid template: %w (set helm.disablePreProcess: true to keep ${ } as it is)", path, text, err)
	}
	if err := c.limit(parsed, path); err != nil {
		return nil, err
	}
	needs := references(parsed.Tree)
	return func(s *scope) (any, error) {
		out := &limitedText{}
		err := parsed.Execute(out, s.data)
		result := out.String()
		if err == nil && (!strings.Contains(result, noValue) || strings.Contains(text, noValue)) {
			return result, nil
		}
		return "", templateError(s, path, text, needs, err)
	}, nil
}

// limit makes every turn of a loop count, and refuses templates that call each
// other, so that no template runs for ever.
func (c *compiler) limit(t *template.Template, path string) error {
	calls := len(t.Templates()) > 1
	walk(t.Root, func(n parse.Node) {
		switch n := n.(type) {
		case *parse.TemplateNode:
			calls = true
		case *parse.RangeNode:
			n.List.Nodes = slices.Insert(n.List.Nodes, 0, c.step.Copy())
		}
	})
	if calls {
		return fmt.Errorf("%s: define, block and template cannot be used in values", path)
	}
	return nil
}
