package reconcile_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/reconcile"
)

// Errors that are only counted have a kind like those that are told.
func TestErrorsOfManyRequests(t *testing.T) {
	behind := func(i int) error { return fault.Wait(time.Second, "Behind", fmt.Errorf("%d is behind", i)) }
	for name, tt := range map[string]struct {
		last error
		kind fault.Kind
		says string
	}{
		"all alike":      {behind(9), fault.Waiting, "and 3 more"},
		"one is unlucky": {errors.New("the server is away"), fault.Transient, "and 3 more"},
		"one is stalled": {fault.Stall("Bad", errors.New("bad")), fault.Waiting, "and 3 more"},
		"one is known":   {behind(1), fault.Waiting, "and 2 more"},
	} {
		t.Run(name, func(t *testing.T) {
			p := reconcile.AtMost(1)
			for i := range 5 {
				p.Do(func() error { return behind(i) })
			}
			p.Do(func() error { return tt.last })
			err := p.Wait()
			if fault.KindOf(err) != tt.kind || !strings.HasSuffix(err.Error(), tt.says) || len(strings.Split(err.Error(), "\n")) != 4 {
				t.Errorf("kind %v, want %v and %s: %v", fault.KindOf(err), tt.kind, tt.says, err)
			}
		})
	}
}

func TestOneRequestThatFailsStopsNoOther(t *testing.T) {
	p, done := reconcile.AtMost(2), atomic.Int32{}
	for i := range 10 {
		p.Do(func() error {
			if i == 0 {
				return errors.New("no")
			}
			done.Add(1)
			return nil
		})
	}
	if err := p.Wait(); err == nil || err.Error() != "no" || done.Load() != 9 {
		t.Errorf("%d done, %v", done.Load(), err)
	}
}
