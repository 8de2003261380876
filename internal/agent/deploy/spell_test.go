package deploy

import (
	"testing"
	"time"
)

func TestSpellCountsTheTimeBetweenLooks(t *testing.T) {
	now := time.Unix(1000, 0)
	// Each step goes on by some minutes; a negative number is a look that fails.
	for name, test := range map[string]struct {
		stored time.Duration
		looks  []int
		want   time.Duration
	}{
		"the first look counts nothing":                {0, []int{5}, 0},
		"two looks":                                    {0, []int{5, 1, 2}, 3 * time.Minute},
		"out of reach":                                 {0, []int{5, 1, -20, -5, 5}, time.Minute},
		"in reach again":                               {0, []int{5, 1, -20, 5, 2}, 3 * time.Minute},
		"what an earlier life has counted":             {4 * time.Minute, []int{60, 1}, 5 * time.Minute},
		"a look that fails before the first one":       {0, []int{-5, 5, 1}, time.Minute},
		"a new life while the cluster is out of reach": {2 * time.Minute, []int{-30, 1, 1}, 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			var s spell
			at := now
			for _, minutes := range test.looks {
				at = at.Add(time.Duration(max(minutes, -minutes)) * time.Minute)
				if minutes < 0 {
					s = s.lost()
				} else {
					s = s.looked("wave 1", test.stored, at)
				}
			}
			if s.spent != test.want {
				t.Errorf("counted %s, want %s", s.spent, test.want)
			}
			if next := s.looked("wave 2", 0, at.Add(time.Hour)); next.spent != 0 {
				t.Errorf("the next step begins with %s", next.spent)
			}
		})
	}
}

func TestSpellIsDoubtful(t *testing.T) {
	now, given := time.Unix(1000, 0), time.Minute
	s := spell{step: "wave 1", spent: 40 * time.Second, at: now}
	for name, test := range map[string]struct {
		s    spell
		step string
		in   time.Duration
		want bool
	}{
		"just looked at":       {s, "wave 1", time.Second, false},
		"long ago":             {s, "wave 1", spellSure, true},
		"it would be too late": {spell{step: "wave 1", spent: 59 * time.Second, at: now}, "wave 1", time.Second, true},
		"it is too late":       {spell{step: "wave 1", spent: given, at: now}, "wave 1", time.Hour, false},
		"another step":         {s, "wave 2", time.Hour, false},
		"the last look failed": {s.lost(), "wave 1", time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.s.doubtful(test.step, given, now.Add(test.in)); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
