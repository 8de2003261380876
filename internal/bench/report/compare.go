package report

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Compare writes two files beside each other: what both have measured, at the
// same size.
func Compare(out io.Writer, base, head File) error {
	fmt.Fprintf(out, "base: %s, on %s\nhead: %s, on %s\n", base.Commit, base.Machine, head.Commit, head.Machine)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range head.Rows {
		before, ok := base.row(row.Name, row.N)
		if !ok {
			fmt.Fprintf(w, "\n%s, N=%d: not measured for the base\n", row.Name, row.N)
			continue
		}
		fmt.Fprintf(w, "\n%s, N=%d\n  figure\tbase\trange\thead\trange\thead / base\t\n", row.Name, row.N)
		for _, now := range row.Figures {
			if then, ok := before.figure(now.Name); ok {
				fmt.Fprintf(w, "  %s\t%s %s\t%s\t%s %s\t%s\t%s\t%s\n", now.Name,
					number(then.Median), then.Unit, then.spread(), number(now.Median), now.Unit, now.spread(),
					ratio(now.Median, then.Median), verdict(then, now))
			}
		}
	}
	return w.Flush()
}

func (f File) row(name string, n int) (Row, bool) {
	for _, row := range f.Rows {
		if row.Name == name && row.N == n {
			return row, true
		}
	}
	return Row{}, false
}

func (r Row) figure(name string) (Summary, bool) {
	for _, s := range r.Figures {
		if s.Name == name {
			return s, true
		}
	}
	return Summary{}, false
}

func ratio(a, b float64) string {
	if b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", a/b)
}

// verdict says whether the ranges of two figures are apart: only then is the
// difference more than the machine's.
func verdict(base, head Summary) string {
	switch {
	case head.Max < base.Min:
		return "lower"
	case head.Min > base.Max:
		return "higher"
	}
	return ""
}
