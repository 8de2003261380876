package templating

import (
	"errors"
	"fmt"
	"strings"
	"text/template"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// Error is why a template cannot be filled in.
type Error struct {
	// Path is where the template stands, and Text the whole of it.
	Path, Text string
	// Near is the part of Text that is to blame, as far as that can be told.
	Near string
	// Missing is what the template needs and the cluster lacks.
	Missing []Reference
	err     error
}

// Error says where, what and why. Of the text it shows the templates alone: a
// password may stand beside them.
func (e *Error) Error() string {
	shown := e.Near
	if shown == "" {
		shown = strings.Join(expressions(e.Text), " ")
	}
	switch {
	case e.Path == "":
		return e.err.Error()
	case shown == "":
		return fmt.Sprintf("%s: %s", e.Path, e.err)
	}
	return fmt.Sprintf("%s: %q: %s", e.Path, shown, e.err)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.err }

// Wrong is an error of what a template gave.
func Wrong(path, text string, err error) *Error { return &Error{Path: path, Text: text, err: err} }

// Lacks returns what the template needs and the cluster lacks.
func (e *Error) Lacks() []Reference { return e.Missing }

// Errors returns the errors of templates that err is made of.
func Errors(err error) []*Error {
	return layers[*Error](err)
}

// Missing returns what templates read of a cluster that lacks it, where err is
// of that: what its layers say with a method Lacks, as Error has it.
func Missing(err error) []Reference {
	var all []Reference
	for _, e := range layers[interface{ Lacks() []Reference }](err) {
		all = append(all, e.Lacks()...)
	}
	return all
}

// layers returns the outermost errors of a type in each branch of err.
func layers[T any](err error) (all []T) {
	for found, ok := range fault.Outermost[T](err) {
		if ok {
			all = append(all, found)
		}
	}
	return all
}

// Line returns in which of some lines of a file the template stands, counted
// from 0; -1 where it cannot be told.
func (e *Error) Line(lines []string) int {
	for _, part := range []string{e.Near, e.Text} {
		expression, _, _ := strings.Cut(part, "\n")
		if at := strings.Index(expression, leftDelimiter); at >= 0 {
			expression = expression[at:]
		}
		for i, line := range lines {
			if expression != "" && strings.Contains(line, expression) {
				return i
			}
		}
	}
	return -1
}

// templateError says what a template lacks on a cluster, or else why it failed.
func templateError(s *Scope, path, text string, needs []Reference, cause error) error {
	out := &Error{Path: path, Text: text, err: inner(cause)}
	var advices []string
	for _, need := range needs {
		if advice := adviceFor(s, need); advice != "" {
			advices, out.Missing = append(advices, advice), append(out.Missing, need)
			if out.Near == "" {
				out.Near = expressionWith(text, need.Key)
			}
		}
	}
	switch {
	case len(advices) > 0:
		out.err = errors.New(strings.Join(advices, "; "))
	case cause == nil:
		out.err = errors.New("it reads something that is not there; give it a default")
	}
	return out
}

// expressionWith returns the first template of a text that holds key, or "".
func expressionWith(text, key string) string {
	for _, expression := range expressions(text) {
		if strings.Contains(expression, key) {
			return expression
		}
	}
	return ""
}

// expressions returns the templates of a text, each up to where it seems to end.
// What is begun and not ended is none: anything may follow it.
func expressions(text string) []string {
	var all []string
	for {
		_, after, ok := strings.Cut(text, leftDelimiter)
		if !ok {
			return all
		}
		expression, _, ok := strings.Cut(after, rightDelimiter)
		if ok && !strings.Contains(expression, leftDelimiter) {
			all = append(all, leftDelimiter+expression+rightDelimiter)
		}
		text = after
	}
}

// inner drops the words in which text/template wraps the error of a function.
func inner(err error) error {
	if e, ok := errors.AsType[template.ExecError](err); ok {
		if cause := errors.Unwrap(e.Err); cause != nil {
			return cause
		}
	}
	return err
}

// adviceFor returns what to do where the cluster lacks what is needed.
func adviceFor(s *Scope, need Reference) string {
	known, ok := s.data[need.Root].(map[string]any)
	if !ok {
		return ""
	}
	if _, there := known[need.Key]; there {
		return ""
	}
	soft := fmt.Sprintf(`${ get .%s %q }`, need.Root, need.Key)
	switch need.Root {
	case rootLabels:
		return fmt.Sprintf("the cluster has no label %q; set it with: kubectl label clusters.fleet.cattle.io -n %s %s %s=VALUE, or use %s, which may be empty",
			need.Key, s.cluster.Namespace, s.cluster.Name, need.Key, soft)
	case rootAnnotations:
		return fmt.Sprintf("the cluster has no annotation %q; set it with: kubectl annotate clusters.fleet.cattle.io -n %s %s %s=VALUE, or use %s, which may be empty",
			need.Key, s.cluster.Namespace, s.cluster.Name, need.Key, soft)
	}
	return fmt.Sprintf("the cluster has no %q in spec.templateValues; add it to the Cluster %s, or use %s, which may be empty",
		need.Key, s.cluster.ID(), soft)
}
