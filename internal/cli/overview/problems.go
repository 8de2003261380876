package overview

import (
	"fmt"
	"strings"
)

// maxAlike is how many problems of one kind and state are told, and maxNames
// how many clusters are named that have the same one.
const maxAlike, maxNames = 10, 8

// shared is a problem, and the clusters that have it.
type shared struct {
	*Problem
	clusters []string
}

// together puts the problems together that differ in nothing but the cluster.
func together(list []Problem) []*shared {
	var out []*shared
	known := map[string]*shared{}
	for i := range list {
		x := &list[i]
		if x.Cluster == "" {
			out = append(out, &shared{Problem: x})
			continue
		}
		key := strings.Join([]string{x.Kind, x.Namespace, x.Name, x.State, x.body()}, "\x00")
		if known[key] == nil {
			known[key] = &shared{Problem: x}
			out = append(out, known[key])
		}
		known[key].clusters = append(known[key].clusters, x.Cluster)
	}
	return out
}

func (p *printer) writeList(title string, list []Problem) {
	if len(list) == 0 {
		return
	}
	p.line("")
	p.line(title)
	alike, order := map[string]int{}, []string(nil)
	for _, x := range together(list) {
		what := x.subject() + ": " + x.State
		if alike[what]++; alike[what] <= maxAlike {
			p.writeProblem(x)
		} else if alike[what] == maxAlike+1 {
			order = append(order, what)
		}
	}
	for _, what := range order {
		p.line(fmt.Sprintf("  and %d more like this: %s (-o json has them all)", alike[what]-maxAlike, what))
	}
}

// subject is what kind of thing a problem is about.
func (x *Problem) subject() string {
	if x.Cluster != "" {
		return "Bundle on a cluster"
	}
	return x.Kind
}

func (p *printer) writeProblem(x *shared) {
	title := x.Title()
	if len(x.clusters) > 1 {
		title = fmt.Sprintf("Bundle %s/%s on %d clusters", x.Namespace, x.Name, len(x.clusters))
	}
	p.line(fmt.Sprintf("  %s: %s", title, p.paint(x.State, x.State)))
	if len(x.clusters) > 1 {
		p.line("    " + named(x.clusters))
	}
	for _, line := range strings.Split(x.body(), "\n") {
		if line != "" {
			p.line("    " + line)
		}
	}
}

// named are the first names of a list.
func named(all []string) string {
	if len(all) <= maxNames {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:maxNames], ", "), len(all)-maxNames)
}

// body is what a problem says below its title.
func (x *Problem) body() string {
	var lines []string
	if x.Message != "" {
		lines = append(lines, x.text())
	}
	for i := range x.Objects {
		lines = append(lines, x.Objects[i].lines()...)
	}
	if x.More {
		lines = append(lines, "and more")
	}
	return strings.Join(lines, "\n")
}

// text is the message, with what it says of each cluster on a line of its own.
func (x *Problem) text() string {
	if x.State != stateHeld {
		return x.Message
	}
	return strings.NewReplacer("; cluster ", "\ncluster ", "; clusters ", "\nclusters ").Replace(x.Message)
}

// Title names what a problem is about.
func (x *Problem) Title() string {
	if x.Cluster != "" {
		return fmt.Sprintf("Bundle %s/%s on cluster %s", x.Namespace, x.Name, x.Cluster)
	}
	return fmt.Sprintf("%s %s/%s", x.Kind, x.Namespace, x.Name)
}

func (o *Object) lines() []string {
	text := objectName(o.ObjectRef) + " " + o.Message
	if by := byText(o.By); by != "" {
		text += " by " + by
	}
	lines := []string{text}
	for _, f := range o.Fields {
		lines = append(lines, fmt.Sprintf("  %s: wanted %s, is %s", f.Path, value(f.Desired), value(f.Live)))
	}
	return lines
}
