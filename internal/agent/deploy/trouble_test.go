package deploy

import (
	"errors"
	"testing"
	"time"

	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/fault"
)

func TestRefusalsAreTriedAgainMoreAndMoreRarely(t *testing.T) {
	refused := []apply.Failure{{Err: fault.Stall(apply.ReasonRejected, errors.New("no"))}, {Err: fault.Wait(time.Second, apply.ReasonForbidden, errors.New("not yet"))}}
	now := time.Unix(0, 0)
	var tr trouble
	last := time.Duration(0)
	for range 30 {
		tr = tr.failed("id", refused, nil, now)
		pause := tr.until.Sub(now)
		if pause < last || pause < backoffMin || pause > backoffMax {
			t.Fatalf("after %d attempts %s, before it was %s", tr.attempts, pause, last)
		}
		last = pause
	}
	if last != backoffMax {
		t.Errorf("in the end every %s", last)
	}
	if other := tr.failed("another", refused, nil, now); other.until.Sub(now) != backoffMin {
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
		"it does not wait for anything":     {fails, true, backoffMin},
	} {
		t.Run(name, func(t *testing.T) {
			got := trouble{}.failed("id", nil, test.err, now).after(test.found)
			if left := max(0, got.until.Sub(now)); left != test.want || got.attempts != 1 {
				t.Errorf("tried again after %s: %+v", left, got)
			}
		})
	}
}
