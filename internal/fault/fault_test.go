package fault_test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

func TestKinds(t *testing.T) {
	stalled := fault.Stall("BadInput", io.EOF)
	waiting := fault.Wait(time.Minute, "Soon", io.EOF)
	for name, tt := range map[string]struct {
		err    error
		kind   fault.Kind
		reason string
		after  time.Duration
	}{
		"none":             {nil, fault.None, "fallback", 0},
		"plain":            {io.EOF, fault.Transient, "fallback", 0},
		"stalled":          {stalled, fault.Stalled, "BadInput", 0},
		"waiting":          {waiting, fault.Waiting, "Soon", time.Minute},
		"without a reason": {fault.Stall("", io.EOF), fault.Stalled, "fallback", 0},
		"wrapped":          {fmt.Errorf("cluster a: %w", waiting), fault.Waiting, "Soon", time.Minute},
		"joined":           {errors.Join(io.EOF, stalled), fault.Transient, "BadInput", 0},
		"outermost wins":   {fault.Wait(time.Second, "Later", stalled), fault.Waiting, "Later", time.Second},
		"stall of nothing": {fault.Stall("BadInput", nil), fault.None, "fallback", 0},
		"wait for nothing": {fault.Wait(time.Second, "Soon", nil), fault.None, "fallback", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fault.KindOf(tt.err); got != tt.kind {
				t.Errorf("kind %v, want %v", got, tt.kind)
			}
			if got := fault.ReasonOf(tt.err, "fallback"); got != tt.reason {
				t.Errorf("reason %q, want %q", got, tt.reason)
			}
			if got := fault.AfterOf(tt.err); got != tt.after {
				t.Errorf("after %s, want %s", got, tt.after)
			}
		})
	}
}

func TestMarksHideNothing(t *testing.T) {
	err := fault.Stall("BadInput", fmt.Errorf("fleet.yaml:3: %w", io.EOF))
	if !errors.Is(err, io.EOF) || err.Error() != "fleet.yaml:3: EOF" {
		t.Errorf("got %v, want the marked error itself", err)
	}
}

// Of errors that were joined the most hopeful decides, whichever stands first
// and however they are wrapped.
func TestKindsOfJoinedErrors(t *testing.T) {
	// From the most hopeful to the least.
	kinds := []struct {
		err    error
		kind   fault.Kind
		reason string
		after  time.Duration
	}{
		{&fault.Error{Kind: fault.Transient, Reason: "Away", Err: io.EOF}, fault.Transient, "Away", 0},
		{io.EOF, fault.Transient, "", 0},
		{fault.Wait(time.Second, "Soon", io.EOF), fault.Waiting, "Soon", time.Second},
		{fault.Wait(time.Minute, "Later", io.EOF), fault.Waiting, "Later", time.Minute},
		{fault.Stall("Bad", io.EOF), fault.Stalled, "Bad", 0},
	}
	wrapped := func(err error) error { return fmt.Errorf("cluster a: %w", err) }
	for i, best := range kinds {
		for _, other := range kinds[i:] {
			reason := cmp.Or(best.reason, other.reason)
			for name, err := range map[string]error{
				"first":   errors.Join(best.err, other.err),
				"second":  errors.Join(other.err, best.err),
				"nested":  errors.Join(other.err, wrapped(errors.Join(other.err, wrapped(best.err)))),
				"in text": fmt.Errorf("%w; nor %w", other.err, best.err),
			} {
				if best.kind == other.kind && best.after == other.after {
					reason = fault.ReasonOf(err, "") // either
				}
				if kind, after := fault.KindOf(err), fault.AfterOf(err); kind != best.kind || after != best.after || fault.ReasonOf(err, "") != reason {
					t.Errorf("%v %q after %s with %v %q after %s, %s: got %v %q after %s", best.kind, best.reason, best.after,
						other.kind, other.reason, other.after, name, kind, fault.ReasonOf(err, ""), after)
				}
				if marked := fault.Stall("Whole", err); fault.KindOf(marked) != fault.Stalled || fault.ReasonOf(marked, "") != "Whole" {
					t.Errorf("the mark over all does not win: %v", fault.KindOf(marked))
				}
			}
		}
	}
}

func TestLike(t *testing.T) {
	err := fault.Like(fault.Wait(time.Second, "Soon", io.EOF), errors.New("in other words"))
	if fault.KindOf(err) != fault.Waiting || fault.ReasonOf(err, "") != "Soon" || fault.AfterOf(err) != time.Second || err.Error() != "in other words" {
		t.Errorf("got %#v", err)
	}
	if err := fault.Like(nil, errors.New("")); err != nil {
		t.Errorf("where nothing is wrong: %#v", err)
	}
	if err := fault.Like(io.EOF, nil); err != nil {
		t.Errorf("without a word: %#v", err)
	}
}
