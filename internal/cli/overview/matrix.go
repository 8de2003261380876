package overview

import (
	"cmp"
	"fmt"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// maxColumns and maxRows are how many columns and rows of states a person can
// still read.
const maxColumns, maxRows = 10, 40

// grid is a table of states. Where it is long, rows in which all is well are
// left out.
type grid struct {
	head      []cell
	rows      []gridRow
	one, many string
}

type gridRow struct {
	cells []cell
	calm  bool
}

// add adds a row, which is calm where all its states are.
func (g *grid) add(cells ...cell) {
	calm := true
	for _, c := range cells {
		calm = calm && (!c.state || c.text == string(fleet.Ready) || c.text == "-")
	}
	g.rows = append(g.rows, gridRow{cells, calm})
}

func (p *printer) writeGrid(g grid) {
	shown := [][]cell{g.head}
	calm, left := 0, 0
	for _, row := range g.rows {
		switch {
		case len(g.rows) > maxRows && row.calm:
			calm++
		case len(shown) > maxRows:
			left++
		default:
			shown = append(shown, row.cells)
		}
	}
	if len(shown) > 1 {
		p.writeTable(shown)
	}
	if left > 0 {
		p.line(fmt.Sprintf("… and %d more (-o json has them all)", left))
	}
	if calm > 0 {
		p.line(fmt.Sprintf("%s: %s", counted(calm, g.one, g.many), p.paint(string(fleet.Ready), "all Ready")))
	}
}

// writeMatrix writes clusters by bundles, or the other way round where that is
// narrower, or both as lists where both ways are too wide.
func (r *Report) writeMatrix(p *printer) {
	switch {
	case r.Unread != "":
		p.writeTotals(r)
		if len(r.Clusters) > 0 {
			p.writeGrid(r.clusterList())
		}
		p.line("What is on which cluster is not shown: " + r.Unread)
	case len(r.Clusters) == 0 && len(r.Deployments) > 0:
		p.writeTotals(r)
		p.line("The clusters are in namespaces that you may not read.")
	case len(r.Clusters) == 0 && r.gitRepo != "":
		p.line("It is on no cluster yet.")
	case len(r.Clusters) == 0:
		p.line("There are no clusters.")
	case len(r.Bundles) > 0 && len(r.Bundles) <= maxColumns:
		if len(r.Clusters) > maxRows {
			p.writeTotals(r)
		}
		p.writeGrid(r.byCluster())
	case len(r.Bundles) > 0 && len(r.Clusters) <= maxColumns:
		p.writeGrid(r.byBundle())
	default:
		if len(r.Bundles) > 0 {
			p.writeTotals(r)
		}
		p.writeGrid(r.clusterList())
	}
}

// writeTotals writes each bundle on a line.
func (p *printer) writeTotals(r *Report) {
	g := grid{head: []cell{plain("BUNDLE"), plain("READY"), plain("STATE")}, one: "bundle", many: "bundles"}
	for _, b := range r.Bundles {
		g.add(plain(r.name(b.Namespace, b.Name)), plain(fmt.Sprintf("%d/%d", b.Ready, b.Wanted)), state(b.State))
	}
	p.writeGrid(g)
	p.line("")
}

// states are those of the deployments, by bundle and cluster.
func (r *Report) states() map[[2]string]string {
	states := make(map[[2]string]string, len(r.Deployments))
	for _, d := range r.Deployments {
		states[[2]string{d.Bundle, d.Cluster}] = d.State
	}
	return states
}

func (r *Report) byCluster() grid {
	g := grid{one: "cluster", many: "clusters"}
	states := r.states()
	cross(&g, "CLUSTER", r.clusterLines(), r.bundleLines(), func(cluster, bundle line) string { return states[[2]string{bundle.key, cluster.key}] })
	return g
}

func (r *Report) byBundle() grid {
	g := grid{one: "bundle", many: "bundles"}
	states := r.states()
	cross(&g, "BUNDLE", r.bundleLines(), r.clusterLines(), func(bundle, cluster line) string { return states[[2]string{bundle.key, cluster.key}] })
	return g
}

// line is a bundle or cluster, as a row or as the head of a column.
type line struct{ key, shown, state string }

func (r *Report) bundleLines() []line {
	out := make([]line, 0, len(r.Bundles))
	for _, b := range r.Bundles {
		out = append(out, line{b.Namespace + "/" + b.Name, r.name(b.Namespace, b.Name), b.State})
	}
	return out
}

func (r *Report) clusterLines() []line {
	out := make([]line, 0, len(r.Clusters))
	for _, c := range r.Clusters {
		out = append(out, line{c.Namespace + "/" + c.Name, r.name(c.Namespace, c.Name), c.State})
	}
	return out
}

// cross fills a grid with what is where a row and a column meet.
func cross(g *grid, kind string, rows, columns []line, at func(row, column line) string) {
	g.head = []cell{plain(kind)}
	for _, c := range columns {
		g.head = append(g.head, plain(c.shown))
	}
	g.head = append(g.head, plain(kind+" IS"))
	for _, r := range rows {
		cells := []cell{plain(r.shown)}
		for _, c := range columns {
			cells = append(cells, state(cmp.Or(at(r, c), "-")))
		}
		g.add(append(cells, state(r.state))...)
	}
}

func (r *Report) clusterList() grid {
	g := grid{head: []cell{plain("CLUSTER"), plain("READY"), plain("STATE")}, one: "cluster", many: "clusters"}
	for _, c := range r.Clusters {
		g.add(plain(r.name(c.Namespace, c.Name)), plain(fmt.Sprintf("%d/%d", c.Ready, c.Wanted)), state(c.State))
	}
	return g
}
