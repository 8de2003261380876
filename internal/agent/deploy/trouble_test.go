package deploy

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/fault"
)

func least() float64 { return 0 }

// TestAFleetDoesNotComeBackInStep: what fails everywhere at once is tried again
// spread out; what waits for its own cluster is looked at when it asks to be.
func TestAFleetDoesNotComeBackInStep(t *testing.T) {
	now := time.Unix(0, 0)
	for name, test := range map[string]struct {
		err          error
		attempts     int
		least, spans time.Duration
	}{
		"the hub refuses":  {errors.New("429"), 5, 16 * time.Second, 4 * time.Second},
		"and has for long": {errors.New("429"), 50, retry.Max, time.Minute},
		"it cannot be":     {fault.Stall(apply.ReasonRejected, errors.New("no")), 1, retry.Max, time.Minute},
		"it waits":         {fault.Wait(15*time.Second, apply.ReasonHookRunning, errors.New("0 of 1 completed")), 1, 15 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			soonest, latest := time.Duration(math.MaxInt64), time.Duration(0)
			for range 1000 {
				var tr trouble
				for range test.attempts {
					tr = tr.failed("id", nil, test.err, now, rand.Float64)
				}
				soonest, latest = min(soonest, tr.until.Sub(now)), max(latest, tr.until.Sub(now))
			}
			if soonest < test.least || latest > test.least*3/2 || latest-soonest < test.spans {
				t.Errorf("a thousand clusters come back after %s to %s", soonest, latest)
			}
		})
	}
}

func TestRefusalsAreTriedAgainMoreAndMoreRarely(t *testing.T) {
	refused := []apply.Failure{{Err: fault.Stall(apply.ReasonRejected, errors.New("no"))}, {Err: fault.Wait(time.Second, apply.ReasonForbidden, errors.New("not yet"))}}
	now := time.Unix(0, 0)
	var tr trouble
	last := time.Duration(0)
	for range 30 {
		tr = tr.failed("id", refused, nil, now, least)
		pause := tr.until.Sub(now)
		if pause < last || pause < retry.Min || pause > retry.Max {
			t.Fatalf("after %d attempts %s, before it was %s", tr.attempts, pause, last)
		}
		last = pause
	}
	if last != retry.Max {
		t.Errorf("in the end every %s", last)
	}
	if other := tr.failed("another", refused, nil, now, least); other.until.Sub(now) != retry.Min {
		t.Errorf("what is new is tried again after %s", other.until.Sub(now))
	}
}

func TestWhatIsFoundMeanwhileEndsTheWait(t *testing.T) {
	now := time.Unix(1000, 0)
	waits, fails := fault.Wait(15*time.Second, apply.ReasonHookRunning, errors.New("0 of 1 completed")), errors.New("the server is away")
	for name, test := range map[string]struct {
		err   error
		found bool
		want  time.Duration
	}{
		"it waits, and something was found": {waits, true, 0},
		"it waits, and nothing was found":   {waits, false, 15 * time.Second},
		"it does not wait for anything":     {fails, true, retry.Min},
	} {
		t.Run(name, func(t *testing.T) {
			got := trouble{}.failed("id", nil, test.err, now, least).after(test.found)
			if left := max(0, got.until.Sub(now)); left != test.want || got.attempts != 1 {
				t.Errorf("tried again after %s: %+v", left, got)
			}
		})
	}
}
