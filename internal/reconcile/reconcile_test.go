package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/reconcile"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func TestResult(t *testing.T) {
	plain := errors.New("connection refused")
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "bundles"}, "b", plain)
	for name, tt := range map[string]struct {
		err   error
		after time.Duration
		back  bool // whether the work queue gets the error
		again bool // whether it backs off without one
		over  bool // whether the work was told to end
	}{
		"fine":                 {},
		"plain":                {err: plain, back: true},
		"stalled":              {err: fault.Stall("BadInput", plain)},
		"waiting":              {err: fault.Wait(time.Minute, "Soon", plain), after: time.Minute},
		"conflict":             {err: fmt.Errorf("patch: %w", conflict), again: true},
		"shut down":            {err: fmt.Errorf("list: %w", context.Canceled), over: true},
		"another has given up": {err: fmt.Errorf("list: %w", context.Canceled), back: true},
		"plain, at the end":    {err: plain, over: true, back: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.over {
				cancel()
			}
			got, err := reconcile.Result(ctx, tt.err)
			again := got.Requeue //nolint:staticcheck // see Result
			if got.RequeueAfter != tt.after || again != tt.again || (err != nil) != tt.back {
				t.Errorf("got %v %v, want after %s, error %v", got, err, tt.after, tt.back)
			}
		})
	}
}

func TestOutcome(t *testing.T) {
	err := errors.New("no such branch")
	for name, tt := range map[string]struct {
		err  error
		want fleet.Condition
	}{
		"fine":   {nil, fleet.Condition{Type: "Accepted", Status: "True"}},
		"plain":  {err, fleet.Condition{Type: "Accepted", Status: "False", Reason: "Error", Message: "no such branch"}},
		"marked": {fault.Stall("NoBranch", err), fleet.Condition{Type: "Accepted", Status: "False", Reason: "NoBranch", Message: "no such branch"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reconcile.Outcome("Accepted", tt.err); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	for name, tt := range map[string]struct {
		n    int
		want string
	}{
		"none": {0, ""},
		"two":  {2, "w0; w1"},
		"ten":  {10, "w0; w1; w2; w3; w4; w5; w6; w7; w8; w9"},
		"more": {13, "w0; w1; w2; w3; w4; w5; w6; w7; w8; w9; and 3 more"},
	} {
		t.Run(name, func(t *testing.T) {
			var all []string
			for i := range tt.n {
				all = append(all, fmt.Sprintf("w%d", i))
			}
			before := slices.Clone(all)
			got := reconcile.Warnings(all)
			if got.Message != tt.want || (got.Status == "True") != (tt.n > 0) {
				t.Errorf("got %s %q, want %q", got.Status, got.Message, tt.want)
			}
			if !slices.Equal(all, before) {
				t.Errorf("the list itself was changed to %s", strings.Join(all, "; "))
			}
		})
	}
}

func TestWorkingIsNeitherReadyNorNot(t *testing.T) {
	if got := reconcile.Working("commit abc"); got.Type != "Ready" || got.Status != "Unknown" || got.Message != "working on commit abc" {
		t.Errorf("got %+v", got)
	}
}
