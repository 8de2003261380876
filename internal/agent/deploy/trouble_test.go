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
