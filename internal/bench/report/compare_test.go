package report

import (
	"strings"
	"testing"
)

func TestCompare(t *testing.T) {
	file := func(commit string, seconds ...float64) File {
		var runs [][]Figure
		for _, s := range seconds {
			runs = append(runs, []Figure{{Name: "time", Unit: "s", Value: s}})
		}
		return File{Commit: commit, Rows: []Row{{Name: "deploy", N: 100, Figures: Summarize(runs)}}}
	}
	tests := map[string]struct {
		base, head File
		want       []string
		lacks      []string
	}{
		"faster":                      {file("a", 4, 5, 6), file("b", 2, 3, 2.5), []string{"5 s", "2.50 s", "2–3", "0.50", "lower"}, nil},
		"slower":                      {file("a", 4, 5), file("b", 9, 10), []string{"higher"}, nil},
		"as before, within its range": {file("a", 4, 6), file("b", 5, 7), []string{"1.20"}, []string{"lower", "higher"}},
		"another size":                {File{}, file("b", 5), []string{"not measured for the base"}, nil},
	}
	for situation, test := range tests {
		t.Run(situation, func(t *testing.T) {
			var out strings.Builder
			if err := Compare(&out, test.base, test.head); err != nil {
				t.Fatal(err)
			}
			for _, part := range test.want {
				if !strings.Contains(out.String(), part) {
					t.Errorf("lacks %q:\n%s", part, out.String())
				}
			}
			for _, part := range test.lacks {
				if strings.Contains(out.String(), part) {
					t.Errorf("has %q:\n%s", part, out.String())
				}
			}
		})
	}
}
