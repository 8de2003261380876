package fault_test

import (
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
		"joined":           {errors.Join(io.EOF, stalled), fault.Stalled, "BadInput", 0},
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
