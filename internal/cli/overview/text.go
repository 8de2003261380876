package overview

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// maxColumns is how many columns of states a person can still read.
const maxColumns = 10

// Write writes the report for people. paint colours a text by the state that
// it speaks of.
func (r *Report) Write(w io.Writer, paint func(state, text string) string) error {
	p := &printer{w: w, paint: paint}
	if len(r.GitRepos)+len(r.Clusters)+len(r.Bundles) == 0 {
		p.line("There are no GitRepos, bundles or clusters here.")
		return p.err
	}
	r.writeRepos(p)
	r.writeMatrix(p)
	p.writeList("PROBLEMS", r.Problems)
	p.writeList("NOTES", r.Notes)
	switch {
	case len(r.Deployments) == 0 || len(r.Problems) > 0:
	case !r.Ready:
		p.line("")
		p.line("Nothing is wrong; the hub is still adding it all up.")
	default:
		p.line("")
		p.line(fmt.Sprintf("Everything is ready: %s on %s.",
			counted(len(r.Bundles), "bundle", "bundles"), counted(len(r.Clusters), "cluster", "clusters")))
	}
	return p.err
}

func (r *Report) writeRepos(p *printer) {
	if len(r.GitRepos) == 0 {
		return
	}
	rows := [][]cell{{plain("GITREPO"), plain("COMMIT"), plain("READY"), plain("STATE")}}
	for _, g := range r.GitRepos {
		commit := cmp.Or(g.Commit[:min(7, len(g.Commit))], "-")
		rows = append(rows, []cell{
			plain(r.name(g.Namespace, g.Name)), plain(commit), plain(fmt.Sprintf("%d/%d", g.Ready, g.Wanted)), state(g.State),
		})
	}
	p.writeTable(rows)
	p.line("")
}

// writeMatrix writes clusters by bundles, or the other way round where that is
// narrower, or the clusters alone where both ways are too wide.
func (r *Report) writeMatrix(p *printer) {
	switch {
	case len(r.Clusters) == 0:
		p.line("There are no clusters.")
	case len(r.Bundles) > 0 && len(r.Bundles) <= maxColumns:
		p.writeTable(r.byCluster())
	case len(r.Bundles) > 0 && len(r.Clusters) <= maxColumns:
		p.writeTable(r.byBundle())
	default:
		p.writeTable(r.clusterList())
	}
}

// states are those of the deployments, by bundle and cluster.
func (r *Report) states() map[[2]string]string {
	states := make(map[[2]string]string, len(r.Deployments))
	for _, d := range r.Deployments {
		states[[2]string{d.Bundle, d.Cluster}] = d.State
	}
	return states
}

func (r *Report) byCluster() [][]cell {
	states := r.states()
	head := []cell{plain("CLUSTER")}
	for _, b := range r.Bundles {
		head = append(head, plain(r.name(b.Namespace, b.Name)))
	}
	rows := [][]cell{append(head, plain("CLUSTER IS"))}
	for _, c := range r.Clusters {
		row := []cell{plain(r.name(c.Namespace, c.Name))}
		for _, b := range r.Bundles {
			row = append(row, state(cmp.Or(states[[2]string{b.Namespace + "/" + b.Name, c.Namespace + "/" + c.Name}], "-")))
		}
		rows = append(rows, append(row, state(c.State)))
	}
	return rows
}

func (r *Report) byBundle() [][]cell {
	states := r.states()
	head := []cell{plain("BUNDLE")}
	for _, c := range r.Clusters {
		head = append(head, plain(r.name(c.Namespace, c.Name)))
	}
	rows := [][]cell{append(head, plain("BUNDLE IS"))}
	for _, b := range r.Bundles {
		row := []cell{plain(r.name(b.Namespace, b.Name))}
		for _, c := range r.Clusters {
			row = append(row, state(cmp.Or(states[[2]string{b.Namespace + "/" + b.Name, c.Namespace + "/" + c.Name}], "-")))
		}
		rows = append(rows, append(row, state(b.State)))
	}
	return rows
}

func (r *Report) clusterList() [][]cell {
	rows := [][]cell{{plain("CLUSTER"), plain("READY"), plain("STATE")}}
	for _, c := range r.Clusters {
		rows = append(rows, []cell{plain(r.name(c.Namespace, c.Name)), plain(fmt.Sprintf("%d/%d", c.Ready, c.Wanted)), state(c.State)})
	}
	return rows
}

// name leaves out the namespace where all objects share one.
func (r *Report) name(namespace, name string) string {
	if r.oneNamespace() {
		return name
	}
	return namespace + "/" + name
}

func (r *Report) oneNamespace() bool {
	var all []string
	for _, g := range r.GitRepos {
		all = append(all, g.Namespace)
	}
	for _, c := range r.Clusters {
		all = append(all, c.Namespace)
	}
	for _, b := range r.Bundles {
		all = append(all, b.Namespace)
	}
	slices.Sort(all)
	return len(slices.Compact(all)) == 1
}

func (p *printer) writeList(title string, list []Problem) {
	if len(list) == 0 {
		return
	}
	p.line("")
	p.line(title)
	for i := range list {
		p.writeProblem(&list[i])
	}
}

func (p *printer) writeProblem(x *Problem) {
	p.line(fmt.Sprintf("  %s: %s", x.Title(), p.paint(x.State, x.State)))
	if x.Message != "" {
		p.line("    " + strings.ReplaceAll(x.text(), "\n", "\n    "))
	}
	for i := range x.Objects {
		p.writeObject(&x.Objects[i])
	}
	if x.More {
		p.line("    and more")
	}
}

// text is the message, with what it says of each cluster on a line of its own.
func (x *Problem) text() string {
	if x.State != stateHeld {
		return x.Message
	}
	return strings.ReplaceAll(x.Message, "; cluster ", "\ncluster ")
}

// Title names what a problem is about.
func (x *Problem) Title() string {
	if x.Cluster != "" {
		return fmt.Sprintf("Bundle %s/%s on cluster %s", x.Namespace, x.Name, x.Cluster)
	}
	return fmt.Sprintf("%s %s/%s", x.Kind, x.Namespace, x.Name)
}

func (p *printer) writeObject(o *Object) {
	text := fmt.Sprintf("    %s %s", objectName(o.ObjectRef), o.Message)
	if by := byText(o.By); by != "" {
		text += " by " + by
	}
	p.line(text)
	for _, f := range o.Fields {
		p.line(fmt.Sprintf("      %s: wanted %s, is %s", f.Path, value(f.Desired), value(f.Live)))
	}
}

func value(text string) string { return cmp.Or(text, "nothing") }

func byText(owners []fleet.FieldOwner) string {
	var texts []string
	for _, o := range owners {
		text := o.Manager
		var how []string
		if o.Operation != "" {
			how = append(how, o.Operation)
		}
		if o.Time != nil {
			how = append(how, o.Time.UTC().Format(time.RFC3339))
		}
		if len(how) > 0 {
			text += " (" + strings.Join(how, ", ") + ")"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}
