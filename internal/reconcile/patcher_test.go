package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func TestRebase(t *testing.T) {
	c := func(kind, status string) fleet.Condition {
		return fleet.Condition{Type: kind, Status: "True", Reason: status}
	}
	list := func(all ...fleet.Condition) []fleet.Condition { return all }
	for name, tt := range map[string]struct {
		before, after, now, want []fleet.Condition
	}{
		"nobody else wrote":       {list(c("A", "1")), list(c("A", "2")), list(c("A", "1")), list(c("A", "2"))},
		"another wrote its own":   {list(c("A", "1"), c("B", "1")), list(c("A", "2"), c("B", "1")), list(c("A", "1"), c("B", "2")), list(c("A", "2"), c("B", "2"))},
		"another added its own":   {list(c("A", "1")), list(c("A", "2")), list(c("A", "1"), c("B", "1")), list(c("A", "2"), c("B", "1"))},
		"both added":              {nil, list(c("A", "1")), list(c("B", "1")), list(c("B", "1"), c("A", "1"))},
		"removed":                 {list(c("A", "1"), c("B", "1")), list(c("B", "1")), list(c("A", "1"), c("B", "2")), list(c("B", "2"))},
		"another removed its own": {list(c("A", "1"), c("B", "1")), list(c("A", "2"), c("B", "1")), list(c("A", "1")), list(c("A", "2"))},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, rebase(tt.before, tt.after, tt.now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBackoffGrowsAndEnds(t *testing.T) {
	b := Backoff[string]()
	for range 40 {
		b.When("a")
	}
	if got := b.When("a"); got < backoffMax || got > backoffMax*3/2 {
		t.Errorf("after many failures: %s, want about %s", got, backoffMax)
	}
	if got := b.When("b"); got > backoffMin*3/2 {
		t.Errorf("after one failure: %s, want about %s", got, backoffMin)
	}
}
