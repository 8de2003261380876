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

// Write writes the report for people. paint colours a text by the state that
// it speaks of.
func (r *Report) Write(w io.Writer, paint func(state, text string) string) error {
	p := &printer{w: w, paint: paint}
	if nothing := r.Nothing(); nothing != "" {
		p.line(nothing)
		return p.err
	}
	r.writeRepos(p)
	r.writeHelmOps(p)
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

// Nothing says that there is nothing at all to report on, or "".
func (r *Report) Nothing() string {
	if len(r.GitRepos)+len(r.HelmOps)+len(r.Clusters)+len(r.Bundles) > 0 {
		return ""
	}
	if r.namespace == "" {
		return "There are no GitRepos, HelmOps, bundles or clusters."
	}
	return "There are no GitRepos, HelmOps, bundles or clusters in namespace " + r.namespace + " (-A looks in all)."
}

func (r *Report) writeRepos(p *printer) {
	if len(r.GitRepos) == 0 {
		return
	}
	table := grid{head: []cell{plain("GITREPO"), plain("COMMIT"), plain("READY"), plain("STATE")}, one: "GitRepo", many: "GitRepos"}
	for _, g := range r.GitRepos {
		commit := cmp.Or(g.Commit[:min(7, len(g.Commit))], "-")
		table.add(plain(r.name(g.Namespace, g.Name)), plain(commit), plain(fmt.Sprintf("%d/%d", g.Ready, g.Wanted)), state(g.State))
	}
	p.writeGrid(table)
	p.line("")
}

func (r *Report) writeHelmOps(p *printer) {
	if len(r.HelmOps) == 0 {
		return
	}
	table := grid{head: []cell{plain("HELMOP"), plain("VERSION"), plain("READY"), plain("STATE")}, one: "HelmOp", many: "HelmOps"}
	for _, h := range r.HelmOps {
		table.add(plain(r.name(h.Namespace, h.Name)), plain(cmp.Or(h.Version, "-")), plain(fmt.Sprintf("%d/%d", h.Ready, h.Wanted)), state(h.State))
	}
	p.writeGrid(table)
	p.line("")
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
	for _, h := range r.HelmOps {
		all = append(all, h.Namespace)
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
