package registry

import (
	"context"
	"net/url"
	"syscall"
	"testing"

	"k8s.io/utils/clock"
)

// Who gives up says nothing of the registry to those who come after.
func TestACallerWhoGivesUp(t *testing.T) {
	for name, tt := range map[string]struct {
		cause error
		want  bool
	}{
		"gave up":       {context.Canceled, false},
		"no connection": {syscall.ECONNREFUSED, true},
		"no answer":     {context.DeadlineExceeded, true},
	} {
		r := &Registry{clock: clock.RealClock{}}
		err := r.fail(r.explain("store content", &url.Error{Op: "Put", URL: "https://registry.example.org", Err: tt.cause}))
		if Unreachable(err) != tt.want || (r.failed != nil) != tt.want {
			t.Errorf("%s: unreachable %t, remembered %v", name, Unreachable(err), r.failed)
		}
	}
}
