package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/flotilla-sh/flotilla/internal/bench/meter"
)

// Table writes the rows for people.
func (f File) Table(out io.Writer) error {
	fmt.Fprintf(out, "%s\ncommit %s\n", f.Machine, f.Commit)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range f.Rows {
		row.table(w)
	}
	return w.Flush()
}

func (r Row) table(w io.Writer) {
	fmt.Fprintf(w, "\n%s, N=%d: %s\n", strings.ToUpper(r.Name), r.N, r.Title)
	if r.Error != "" {
		fmt.Fprintf(w, "  not measured: %s\n", r.Error)
		return
	}
	fmt.Fprintf(w, "  figure\tours\trange\tfloor\tratio\tgoal\tpeer\n")
	for _, s := range r.Figures {
		fmt.Fprintf(w, "  %s\t%s %s\t%s\t%s\t%s\t%s\t%s\n",
			s.Name, number(s.Median), s.Unit, s.spread(), orDash(s.Floor), orDash(s.Ratio), dash(s.Goal), dash(s.Peer))
	}
}

// Requests writes which requests a row has made, for each of n.
func (r Row) Requests(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, p := range r.Phases {
		fmt.Fprintf(w, "%s N=%d, %s (audit log and metrics differ by %d)\n", r.Name, r.N, p.Name, p.Disagree)
		for _, request := range p.Requests {
			fmt.Fprintf(w, "%d\t%.3f\t %s\t\n", request.N, float64(request.N)/float64(r.N), name(request.Request))
		}
	}
	return w.Flush()
}

func name(r meter.Request) string {
	text := r.Agent + " " + r.Verb + " " + r.Resource
	if !r.OK {
		text += " (refused)"
	}
	return text
}

func (s Summary) spread() string {
	if len(s.Values) < 2 {
		return "-"
	}
	return number(s.Min) + "–" + number(s.Max)
}

// number shows three digits that matter.
func number(v float64) string {
	switch {
	case v >= 100 || v <= -100 || v == float64(int(v)):
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func orDash(v float64) string {
	if v == 0 {
		return "-"
	}
	return number(v)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
