package status_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-sh/flotilla/internal/status"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func in(state fleet.BundleState) status.Contribution { return status.Contribution{State: state} }

func TestCounter(t *testing.T) {
	c := status.NewCounter(status.NounCluster)
	if c.Message() != "" || c.Worst() != "" || c.Display() != "0/0" {
		t.Errorf("an empty counter says %q %q %q", c.Message(), c.Worst(), c.Display())
	}
	for i := range 12 {
		c.Set(fmt.Sprintf("ws/c%02d", i), in(fleet.NotReady))
	}
	c.Set("ws/a", in(fleet.Ready))
	c.Set("ws/z", status.Contribution{State: fleet.ErrApplied, Detail: &status.Detail{Message: "boom"}})
	if c.Set("ws/z", status.Contribution{State: fleet.ErrApplied, Detail: &status.Detail{Message: "boom"}}) {
		t.Error("setting the same again is a change")
	}
	if got, want := c.Message(), "ErrApplied(1) [Cluster ws/z: boom]; NotReady(12) [Cluster ws/c00]"; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	if c.Worst() != "ErrApplied" || c.Display() != "1/14" {
		t.Errorf("worst %q, display %q", c.Worst(), c.Display())
	}
	var names []string
	for _, r := range c.Summary().NonReadyResources {
		names = append(names, r.Name)
	}
	want := []string{"ws/z", "ws/c00", "ws/c01", "ws/c02", "ws/c03", "ws/c04", "ws/c05", "ws/c06", "ws/c07", "ws/c08"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	if !c.Delete("ws/z") || c.Delete("ws/z") {
		t.Error("Delete does not tell what it did")
	}
	if c.Worst() != "NotReady" {
		t.Errorf("worst is still %q", c.Worst())
	}
}

// The order of the states is that of the API.
func TestWorstState(t *testing.T) {
	states := []fleet.BundleState{fleet.Ready, fleet.StateOffline, fleet.NotReady, fleet.Pending, fleet.OutOfSync, fleet.Modified, fleet.WaitApplied, fleet.ErrApplied}
	for i, worse := range states[1:] {
		for _, better := range states[:i+1] {
			c := status.NewCounter(status.NounCluster)
			c.Set("a", in(better))
			c.Set("b", in(worse))
			if c.Worst() != string(worse) {
				t.Errorf("of %s and %s the worst is %s", better, worse, c.Worst())
			}
		}
	}
}
