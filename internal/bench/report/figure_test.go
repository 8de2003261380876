package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSummarize(t *testing.T) {
	run := func(seconds, floor float64) []Figure {
		return []Figure{{Name: "time", Unit: "s", Value: seconds, Floor: floor, Goal: "≤ 6"}, {Name: "requests", Value: 4, Exact: true}}
	}
	got := Summarize([][]Figure{run(9, 3), run(6, 2), run(7, 4)})
	want := []Summary{
		{Name: "time", Unit: "s", Median: 7, Min: 6, Max: 9, Values: []float64{9, 6, 7}, Floor: 3, Ratio: 7.0 / 3, Goal: "≤ 6"},
		{Name: "requests", Median: 4, Min: 4, Max: 4, Values: []float64{4, 4, 4}, Exact: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0.1234: "0.12", 3: "3", 12.34: "12.3", 123.4: "123", 57.66: "57.7"} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %s, want %s", v, got, want)
		}
	}
}
