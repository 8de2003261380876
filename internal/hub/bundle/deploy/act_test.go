package deploy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// Errors that are only counted have a kind like those that are told.
func TestErrorsOfManyRequests(t *testing.T) {
	behind := fault.Wait(time.Second, "Behind", errors.New("behind"))
	for name, tt := range map[string]struct {
		last error
		kind fault.Kind
	}{
		"all alike":      {behind, fault.Waiting},
		"one is unlucky": {errors.New("the server is away"), fault.Transient},
		"one is stalled": {fault.Stall("Bad", errors.New("bad")), fault.Waiting},
	} {
		t.Run(name, func(t *testing.T) {
			var p parallel
			for range 5 {
				p.errs = append(p.errs, behind)
			}
			p.errs = append(p.errs, tt.last)
			err := p.wait()
			if fault.KindOf(err) != tt.kind || !strings.HasSuffix(err.Error(), "and 3 more") || len(strings.Split(err.Error(), "\n")) != 4 {
				t.Errorf("kind %v, want %v: %v", fault.KindOf(err), tt.kind, err)
			}
		})
	}
}
