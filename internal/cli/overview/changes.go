package overview

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
)

// Changes tells, one a line, what is different in next.
func Changes(last, next *Report) []string {
	var lines []string
	problems := byTitle(next.Problems)
	told := map[string]bool{}
	for _, s := range diff(subjects(last), subjects(next)) {
		line := s.text()
		if why := reasons(problems[s.name]); why != "" {
			line += ": " + why
		}
		lines = append(lines, line)
		told[s.name] = true
	}
	before := byTitle(last.Problems)
	for i := range next.Problems {
		title := next.Problems[i].Title()
		if told[title] || reflect.DeepEqual(before[title], problems[title]) {
			continue
		}
		told[title] = true
		lines = append(lines, fmt.Sprintf("%s: %s: %s", title, next.Problems[i].State, reasons(problems[title])))
	}
	return lines
}

// byTitle groups problems by what they are about.
func byTitle(problems []Problem) map[string][]Problem {
	out := map[string][]Problem{}
	for _, x := range problems {
		out[x.Title()] = append(out[x.Title()], x)
	}
	return out
}

// reasons are problems in one line.
func reasons(problems []Problem) string {
	var all []string
	for i := range problems {
		all = append(all, problems[i].brief()...)
	}
	return strings.Join(all, "; ")
}

// subject is anything that has a state.
type subject struct{ name, was, is string }

func (s subject) text() string {
	switch {
	case s.was == "":
		return fmt.Sprintf("%s: %s", s.name, s.is)
	case s.is == "":
		return fmt.Sprintf("%s: gone (was %s)", s.name, s.was)
	}
	return fmt.Sprintf("%s: %s, was %s", s.name, s.is, s.was)
}

// subjects lists what has a state, in the order of the report.
func subjects(r *Report) []subject {
	var out []subject
	for _, g := range r.GitRepos {
		text := g.State
		if g.Commit != "" {
			text = fmt.Sprintf("%s %d/%d at %s", g.State, g.Ready, g.Wanted, g.Commit[:min(7, len(g.Commit))])
		}
		out = append(out, subject{name: fmt.Sprintf("GitRepo %s/%s", g.Namespace, g.Name), is: text})
	}
	for _, h := range r.HelmOps {
		out = append(out, subject{name: fmt.Sprintf("HelmOp %s/%s", h.Namespace, h.Name), is: fmt.Sprintf("%s %d/%d of version %s", h.State, h.Ready, h.Wanted, cmp.Or(h.Version, "-"))})
	}
	for _, c := range r.Clusters {
		out = append(out, subject{name: fmt.Sprintf("Cluster %s/%s", c.Namespace, c.Name), is: c.State})
	}
	for _, d := range r.Deployments {
		out = append(out, subject{name: fmt.Sprintf("Bundle %s on cluster %s", d.Bundle, d.Cluster), is: d.State})
	}
	return out
}

// diff returns the subjects whose state is not the same.
func diff(last, next []subject) []subject {
	was := map[string]string{}
	for _, s := range last {
		was[s.name] = s.is
	}
	var out []subject
	for _, s := range next {
		if was[s.name] != s.is {
			out = append(out, subject{s.name, was[s.name], s.is})
		}
		delete(was, s.name)
	}
	for _, s := range last {
		if _, gone := was[s.name]; gone {
			out = append(out, subject{name: s.name, was: s.is})
		}
	}
	return out
}

// brief are the parts of a problem without its state.
func (x *Problem) brief() []string {
	var parts []string
	if x.Message != "" {
		parts = append(parts, strings.ReplaceAll(x.Message, "\n", "; "))
	}
	for _, o := range x.Objects {
		text := objectName(o.ObjectRef) + " " + o.Message
		if by := byText(o.By); by != "" {
			text += " by " + by
		}
		for _, f := range o.Fields {
			text += fmt.Sprintf(", %s: wanted %s, is %s", f.Path, value(f.Desired), value(f.Live))
		}
		parts = append(parts, text)
	}
	return parts
}
