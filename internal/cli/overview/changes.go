package overview

import (
	"fmt"
	"reflect"
)

// Changes tells, one a line, what is different in next.
func Changes(last, next *Report) []string {
	var lines []string
	for _, s := range diff(subjects(last), subjects(next)) {
		lines = append(lines, s.text())
	}
	known := map[string]Problem{}
	for _, x := range last.Problems {
		known[x.Title()+x.State] = x
	}
	for i := range next.Problems {
		x := &next.Problems[i]
		if old, ok := known[x.Title()+x.State]; ok && reflect.DeepEqual(old, *x) {
			continue
		}
		lines = append(lines, x.brief())
	}
	return lines
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

// brief is a problem in one line.
func (x *Problem) brief() string {
	text := fmt.Sprintf("%s: %s", x.Title(), x.State)
	if x.Message != "" {
		text += ": " + x.Message
	}
	for _, o := range x.Objects {
		text += fmt.Sprintf("; %s %s", objectName(o.ObjectRef), o.Message)
		if by := byText(o.By); by != "" {
			text += " by " + by
		}
		for _, f := range o.Fields {
			text += fmt.Sprintf(", %s: wanted %s, is %s", f.Path, value(f.Desired), value(f.Live))
		}
	}
	return text
}
