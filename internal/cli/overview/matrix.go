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
	states := r.states()
	g := grid{head: []cell{plain("CLUSTER")}, one: "cluster", many: "clusters"}
	for _, b := range r.Bundles {
		g.head = append(g.head, plain(r.name(b.Namespace, b.Name)))
	}
	g.head = append(g.head, plain("CLUSTER IS"))
	for _, c := range r.Clusters {
		row := []cell{plain(r.name(c.Namespace, c.Name))}
		for _, b := range r.Bundles {
			row = append(row, state(cmp.Or(states[[2]string{b.Namespace + "/" + b.Name, c.Namespace + "/" + c.Name}], "-")))
		}
		g.add(append(row, state(c.State))...)
	}
	return g
}

func (r *Report) byBundle() grid {
	states := r.states()
	g := grid{head: []cell{plain("BUNDLE")}, one: "bundle", many: "bundles"}
	for _, c := range r.Clusters {
		g.head = append(g.head, plain(r.name(c.Namespace, c.Name)))
	}
	g.head = append(g.head, plain("BUNDLE IS"))
	for _, b := range r.Bundles {
		row := []cell{plain(r.name(b.Namespace, b.Name))}
		for _, c := range r.Clusters {
			row = append(row, state(cmp.Or(states[[2]string{b.Namespace + "/" + b.Name, c.Namespace + "/" + c.Name}], "-")))
		}
		g.add(append(row, state(b.State))...)
	}
	return g
}

func (r *Report) clusterList() grid {
	g := grid{head: []cell{plain("CLUSTER"), plain("READY"), plain("STATE")}, one: "cluster", many: "clusters"}
	for _, c := range r.Clusters {
		g.add(plain(r.name(c.Namespace, c.Name)), plain(fmt.Sprintf("%d/%d", c.Ready, c.Wanted)), state(c.State))
	}
	return g
}
