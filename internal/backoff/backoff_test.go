package backoff

import (
	"math"
	"testing"
	"time"
)

func least() float64 { return 0 }
func most() float64  { return math.Nextafter(1, 0) }

func TestAfter(t *testing.T) {
	const never = 10000 * time.Hour
	for name, tt := range map[string]struct {
		b        Backoff
		failures int
		want     time.Duration
	}{
		"none yet":                {Backoff{Min: time.Second, Max: time.Minute}, 0, time.Second},
		"the first":               {Backoff{Min: time.Second, Max: time.Minute}, 1, time.Second},
		"the second":              {Backoff{Min: time.Second, Max: time.Minute}, 2, 2 * time.Second},
		"the sixth":               {Backoff{Min: time.Second, Max: time.Minute}, 6, 32 * time.Second},
		"the seventh":             {Backoff{Min: time.Second, Max: time.Minute}, 7, time.Minute},
		"very many":               {Backoff{Min: time.Second, Max: time.Minute}, math.MaxInt, time.Minute},
		"no bound":                {Backoff{Min: time.Second, Max: math.MaxInt64}, 1000, math.MaxInt64},
		"long waits":              {Backoff{Min: never, Max: 20 * never}, 1000, 20 * never},
		"always the same":         {Backoff{Min: time.Second, Max: time.Second}, 9, time.Second},
		"no shorter than it says": {Backoff{Min: time.Minute, Max: time.Second}, 9, time.Minute},
		"no wait":                 {Backoff{}, 9, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.b.After(tt.failures, least); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// TestAfterGrows: no wait is shorter than the one before, and none is out of
// bounds, whatever the jitter.
func TestAfterGrows(t *testing.T) {
	b := Backoff{Min: 800 * time.Millisecond, Max: 5 * time.Minute, Jitter: 0.5}
	last := time.Duration(0)
	for failures := range 200 {
		low, high := b.After(failures, least), b.After(failures, most)
		if low < last || low < b.Min || low > b.Max || high < low*14/10 || high > low*3/2 {
			t.Fatalf("after %d failures %s to %s; before that %s", failures, low, high, last)
		}
		last = low
	}
	if last != b.Max {
		t.Errorf("in the end %s", last)
	}
}
