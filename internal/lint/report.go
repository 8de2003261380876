package lint

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/fault"
)

// Severity says whether a bundle can be deployed in spite of a problem.
type Severity string

const (
	// Error is for what the hub or a cluster would refuse.
	Error Severity = "error"
	// Warning is for what is probably not meant.
	Warning Severity = "warning"
)

// Problem is one thing that is wrong.
type Problem struct {
	// File and Line say where; Line is 0 for a whole file.
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	// Severity is error or warning.
	Severity Severity `json:"severity"`
	// Bundle is the bundle's name.
	Bundle string `json:"bundle,omitempty"`
	// Clusters are those that have the problem, where others do not.
	Clusters []string `json:"clusters,omitempty"`
	// Message says what is wrong and what to do.
	Message string `json:"message"`

	clusters []string
	of       int // as many clusters get the bundle
}

// String returns the problem in the form that compilers use.
func (p *Problem) String() string {
	where := p.File
	if p.Line > 0 {
		where = fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	if where != "" {
		where += ": "
	}
	text := fmt.Sprintf("%s%s: %s", where, p.Severity, strings.ReplaceAll(p.Message, "\n", "\n  "))
	if len(p.Clusters) > 0 {
		text += " (on " + strings.Join(p.Clusters, ", ") + ")"
	}
	return text
}

// Report is all that was found, in the order of files and lines.
type Report struct {
	// Bundles is how many bundles there are.
	Bundles int `json:"bundles"`
	// Errors and Warnings count Problems.
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
	Problems []Problem `json:"problems"`
}

// Text writes the report for people and editors.
func (r *Report) Text(w io.Writer) error {
	for i := range r.Problems {
		if _, err := fmt.Fprintln(w, r.Problems[i].String()); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s, %s in %s\n", count(r.Errors, "error"), count(r.Warnings, "warning"), count(r.Bundles, "bundle"))
	return err
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// GitHub writes the report as commands that annotate files in a workflow of
// GitHub Actions, and of those that understand the same.
func (r *Report) GitHub(w io.Writer) error {
	message := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	for i := range r.Problems {
		p := &r.Problems[i]
		var where []string
		if p.File != "" {
			where = append(where, "file="+property.Replace(p.File), fmt.Sprintf("line=%d", max(p.Line, 1)))
		}
		if p.Bundle != "" {
			where = append(where, "title="+property.Replace("bundle "+p.Bundle))
		}
		command := strings.TrimSpace(string(p.Severity) + " " + strings.Join(where, ","))
		if _, err := fmt.Fprintf(w, "::%s::%s\n", command, message.Replace(p.Message)); err != nil {
			return err
		}
	}
	return nil
}

// subject is the bundle that problems are about.
type subject struct {
	draft  *bundle.Draft
	config string
}

// problem is one whose place is a path of the repository.
func (s *subject) problem(severity Severity, note fault.Note) Problem {
	return Problem{File: cmp.Or(note.File, s.config), Line: note.Line, Severity: severity, Bundle: s.draft.Name, Message: note.Message}
}

// rendered is a problem whose place is a path of the bundle.
func (s *subject) rendered(severity Severity, note fault.Note) Problem {
	if note.File != "" {
		note.File = path.Join(s.draft.Path, note.File)
	}
	return s.problem(severity, note)
}

// identity tells problems apart.
type identity struct {
	file     string
	line     int
	severity Severity
	message  string
}

// findings collects problems, each once.
type findings struct {
	known map[identity]int
	all   []Problem
}

func newFindings() *findings { return &findings{known: map[identity]int{}} }

func (f *findings) add(p Problem) {
	id := identity{p.File, p.Line, p.Severity, p.Message}
	at, known := f.known[id]
	if !known {
		f.known[id] = len(f.all)
		f.all = append(f.all, p)
		return
	}
	for _, cluster := range p.clusters {
		if !slices.Contains(f.all[at].clusters, cluster) {
			f.all[at].clusters = append(f.all[at].clusters, cluster)
		}
	}
}

func (f *findings) report(bundles int) *Report {
	r := &Report{Bundles: bundles, Problems: []Problem{}}
	for _, p := range f.all {
		if len(p.clusters) < p.of {
			p.Clusters = p.clusters
		}
		if p.Severity == Error {
			r.Errors++
		} else {
			r.Warnings++
		}
		r.Problems = append(r.Problems, p)
	}
	slices.SortStableFunc(r.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return r
}
