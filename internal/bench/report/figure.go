// Package report puts what was measured into a table and a file.
package report

import (
	"slices"
)

// Figure is one thing that one run of a row has measured.
type Figure struct {
	// Name says what it is, Unit in what it is given.
	Name, Unit string
	Value      float64
	// Floor is the least that it could be, as measured in the same run or as
	// reckoned; zero where there is none.
	Floor float64
	// Peer is what Rancher Fleet 0.16 needs, Goal what the architecture asks.
	Peer, Goal string
	// Exact figures are counts that can be compared between machines.
	Exact bool
}

// Summary is a figure over all repeats of a row.
type Summary struct {
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Median float64   `json:"median"`
	Min    float64   `json:"min"`
	Max    float64   `json:"max"`
	Values []float64 `json:"values"`
	// Floor is the median of the floors, Ratio how often it fits the median.
	Floor float64 `json:"floor,omitempty"`
	Ratio float64 `json:"ratio,omitempty"`
	Peer  string  `json:"peer,omitempty"`
	Goal  string  `json:"goal,omitempty"`
	Exact bool    `json:"exact,omitempty"`
}

// Summarize combines the runs of a row; each has the same figures, or some of
// them.
func Summarize(runs [][]Figure) []Summary {
	var order []string
	byName := map[string][]Figure{}
	for _, run := range runs {
		for _, f := range run {
			if byName[f.Name] == nil {
				order = append(order, f.Name)
			}
			byName[f.Name] = append(byName[f.Name], f)
		}
	}
	out := make([]Summary, 0, len(order))
	for _, name := range order {
		out = append(out, summarize(byName[name]))
	}
	return out
}

func summarize(figures []Figure) Summary {
	first := figures[0]
	s := Summary{Name: first.Name, Unit: first.Unit, Peer: first.Peer, Goal: first.Goal, Exact: first.Exact}
	var floors []float64
	for _, f := range figures {
		s.Values, floors = append(s.Values, f.Value), append(floors, f.Floor)
	}
	s.Median, s.Min, s.Max = median(s.Values), slices.Min(s.Values), slices.Max(s.Values)
	if s.Floor = median(floors); s.Floor > 0 {
		s.Ratio = s.Median / s.Floor
	}
	return s
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}
