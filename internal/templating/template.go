package templating

import (
	"errors"
	"fmt"
	"maps"
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

// Eval returns something filled in for one cluster.
type Eval func(*Scope) (any, error)

// Constant returns an Eval that is the same for all.
func Constant(value any) Eval {
	return func(*Scope) (any, error) { return value, nil }
}

// InValues tells whether Helm values hold anything to fill in.
func InValues(value any) bool {
	return contains(value, func(text string) bool { return isTemplate(text) || strings.HasPrefix(text, labelPrefix) })
}

// InLabels tells whether Helm values hold texts that stand for a label.
func InLabels(value any) bool {
	return contains(value, func(text string) bool { return strings.HasPrefix(text, labelPrefix) })
}

// InObject tells whether an object holds anything to fill in.
func InObject(object map[string]any) bool { return contains(object, isTemplate) }

func isTemplate(text string) bool { return strings.Contains(text, leftDelimiter) }

// contains tells whether a text or key in value fulfils is.
func contains(value any, is func(string) bool) bool {
	switch v := value.(type) {
	case string:
		return is(v)
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return contains(item, is) })
	case map[string]any:
		for key, below := range v {
			if isTemplate(key) || contains(below, is) {
				return true
			}
		}
	}
	return false
}

// Compiler parses templates that are filled in together. Neither it nor what
// it returns may be used by several goroutines at once.
type Compiler struct {
	budget budget
	funcs  template.FuncMap
	// step, passed and take are inserted into templates.
	step         parse.Node
	passed, take *parse.CommandNode
	// objects is set for the templates of objects, where a text that is one
	// template alone becomes what the template gives, a number or a list say;
	// in values it becomes what YAML makes of the text.
	objects bool
	// labels is set where only texts that stand for a label are filled in.
	labels bool
	taken  any
	reads  map[Reference]bool
}

// ForValues returns a compiler of templates in Helm values.
func ForValues() *Compiler {
	c := &Compiler{reads: map[Reference]bool{}}
	c.funcs = functions(&c.budget)
	c.funcs[takeFunction] = func(value any) string { c.taken = value; return "" }
	c.step = c.action(stepFunction)
	c.passed, c.take = c.command(passFunction), c.command(takeFunction)
	return c
}

// ForLabels returns a compiler of Helm values that fills in texts that stand for
// a label, and leaves templates as they are.
func ForLabels() *Compiler {
	c := ForValues()
	c.labels = true
	return c
}

// CountIn makes what is filled in count in a total as well.
func (c *Compiler) CountIn(total *Total) { c.budget.total = total }

// ForObjects returns a compiler of templates in objects.
func ForObjects() *Compiler {
	c := ForValues()
	c.objects = true
	return c
}

// Reset lets all limits begin to count anew, for the next cluster.
func (c *Compiler) Reset() { c.budget.reset() }

// Reads returns what the compiled templates read, sorted. A whole root stands
// for all that is in it.
func (c *Compiler) Reads() []Reference {
	return slices.SortedFunc(maps.Keys(c.reads), Reference.compare)
}

// action returns the node of a template that is one command.
func (c *Compiler) action(text string) parse.Node {
	tree := template.Must(c.parse("inserted", leftDelimiter+" "+text+" "+rightDelimiter))
	return tree.Root.Nodes[0]
}

// command returns a command that takes its value through the pipe.
func (c *Compiler) command(name string) *parse.CommandNode {
	command := c.action(name + " nil").(*parse.ActionNode).Pipe.Cmds[0]
	command.Args = command.Args[:1]
	return command
}

func (c *Compiler) parse(name, text string) (*template.Template, error) {
	return template.New(name).Delims(leftDelimiter, rightDelimiter).
		Option("missingkey=error").Funcs(c.funcs).Parse(text)
}

// Value compiles what JSON can hold; path is where it stands. What is returned
// beside an error fills in as far as it can.
func (c *Compiler) Value(value any, path string) (Eval, error) {
	switch v := value.(type) {
	case string:
		if label, ok := strings.CutPrefix(v, labelPrefix); ok && !c.objects {
			return func(s *Scope) (any, error) { return s.labels[label], nil }, nil
		}
		if c.objects {
			return c.text(v, path, true)
		}
		return c.valueText(v, path)
	case []any:
		return c.list(v, path)
	case map[string]any:
		return c.object(v, path)
	}
	return Constant(value), nil
}

// Text compiles one template, which gives text.
func (c *Compiler) Text(text, path string) (Eval, error) { return c.text(text, path, false) }

// fills tells whether a text holds a template that is filled in.
func (c *Compiler) fills(text string) bool { return !c.labels && isTemplate(text) }

func (c *Compiler) list(in []any, path string) (Eval, error) {
	if !InValues(in) {
		return Constant(in), nil
	}
	items := make([]Eval, len(in))
	var errs []error
	for i, item := range in {
		var err error
		items[i], err = c.Value(item, fmt.Sprintf("%s[%d]", path, i))
		errs = append(errs, err)
	}
	return func(s *Scope) (any, error) {
		if err := c.budget.total.add(len(items)*itemSize, 0); err != nil {
			return nil, err
		}
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

type entry struct{ key, value Eval }

func (c *Compiler) object(in map[string]any, path string) (Eval, error) {
	if !InValues(in) {
		return Constant(in), nil
	}
	var entries []entry
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(in)) {
		below := strings.TrimPrefix(path+"."+key, ".")
		keyEval, keyErr := c.keyText(key, below)
		valueEval, err := c.Value(in[key], below)
		entries = append(entries, entry{keyEval, valueEval})
		errs = append(errs, keyErr, err)
	}
	return func(s *Scope) (any, error) {
		if err := c.budget.total.add(len(entries)*4*itemSize, 0); err != nil {
			return nil, err
		}
		return fillObject(entries, path, s)
	}, errors.Join(errs...)
}

func fillObject(entries []entry, path string, s *Scope) (any, error) {
	out := make(map[string]any, len(entries))
	var errs []error
	for _, e := range entries {
		key, keyErr := e.key(s)
		value, err := e.value(s)
		errs = append(errs, keyErr, err)
		name, _ := key.(string)
		if _, twice := out[name]; twice && keyErr == nil {
			errs = append(errs, &Error{Path: path, err: fmt.Errorf("two keys become %q", name)})
		}
		out[name] = value
	}
	return out, errors.Join(errs...)
}

// text compiles one template. Where typed is set, a text that is one template
// alone becomes what the template gives.
func (c *Compiler) text(text, path string, typed bool) (Eval, error) {
	if !c.fills(text) {
		return Constant(text), nil
	}
	parsed, err := c.parse(path, text)
	if err != nil {
		return failing(&Error{Path: path, Text: text, err: fmt.Errorf("not a valid template: %w%s", err, c.howToKeep())})
	}
	if err := c.limit(parsed); err != nil {
		return failing(&Error{Path: path, Text: text, err: err})
	}
	found := findReferences(parsed.Tree)
	for _, r := range found.reads {
		c.reads[r] = true
	}
	alone := typed && c.takeAlone(parsed.Root)
	return func(s *Scope) (any, error) {
		out := &limitedText{budget: &c.budget, free: len(text)}
		c.taken = nil
		err := parsed.Execute(out, s.data)
		if err == nil {
			err = c.budget.total.add(out.Len(), 0)
		}
		switch result := out.String(); {
		case err != nil:
		case alone && c.taken != nil:
			if plain, err := plainValue(c.taken); err == nil {
				return plain, nil
			}
			err = fmt.Errorf("it gives a %T, which no object can hold", c.taken)
		case !alone && (!strings.Contains(result, noValue) || strings.Contains(text, noValue)):
			return result, nil
		}
		return "", templateError(s, path, text, found.named, err)
	}, nil
}

// failing is a template that cannot be compiled: filling in fails as well, so
// that others beside it can be tried.
func failing(err error) (Eval, error) {
	return func(*Scope) (any, error) { return "", err }, err
}

func (c *Compiler) howToKeep() string {
	if c.objects {
		return " (the annotation " + Annotation + `: "false" keeps the object as it is)`
	}
	return " (set helm.disablePreProcess: true to keep ${ } as it is)"
}

// limit makes every turn of a loop and every command count, and refuses
// templates that call each other, so that no template takes more than its share.
func (c *Compiler) limit(t *template.Template) error {
	calls := len(t.Templates()) > 1
	walk(t.Root, func(n parse.Node) {
		switch n := n.(type) {
		case *parse.TemplateNode:
			calls = true
		case *parse.RangeNode:
			n.List.Nodes = slices.Insert(n.List.Nodes, 0, c.step.Copy())
		case *parse.PipeNode:
			c.passEach(n)
		}
	})
	if calls {
		return errors.New("define, block and template cannot be used here")
	}
	return nil
}

// passEach has a look at the value of each command of a pipe, since a value can
// grow with each.
func (c *Compiler) passEach(p *parse.PipeNode) {
	commands := make([]*parse.CommandNode, 0, 2*len(p.Cmds))
	for _, command := range p.Cmds {
		commands = append(commands, command, c.passed.Copy().(*parse.CommandNode))
	}
	p.Cmds = commands
}
