package v1alpha1_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func TestSetCondition(t *testing.T) {
	const then, now = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"
	old := fleet.Condition{Type: "Ready", Status: "True", Reason: "R", Message: "m", LastUpdateTime: then, LastTransitionTime: then}
	for name, tt := range map[string]struct {
		have    []fleet.Condition
		set     fleet.Condition
		want    fleet.Condition
		changed bool
	}{
		"new":     {nil, fleet.Condition{Type: "Ready", Status: "True"}, fleet.Condition{Type: "Ready", Status: "True", LastUpdateTime: now, LastTransitionTime: now}, true},
		"same":    {[]fleet.Condition{old}, fleet.Condition{Type: "Ready", Status: "True", Reason: "R", Message: "m"}, old, false},
		"message": {[]fleet.Condition{old}, fleet.Condition{Type: "Ready", Status: "True", Reason: "R", Message: "n"}, fleet.Condition{Type: "Ready", Status: "True", Reason: "R", Message: "n", LastUpdateTime: now, LastTransitionTime: then}, true},
		"status":  {[]fleet.Condition{old}, fleet.Condition{Type: "Ready", Status: "False"}, fleet.Condition{Type: "Ready", Status: "False", LastUpdateTime: now, LastTransitionTime: now}, true},
	} {
		t.Run(name, func(t *testing.T) {
			conditions := tt.have
			at, _ := time.Parse(time.RFC3339, now)
			if got := fleet.SetCondition(&conditions, tt.set, at); got != tt.changed {
				t.Errorf("changed: %v, want %v", got, tt.changed)
			}
			if diff := cmp.Diff([]fleet.Condition{tt.want}, conditions); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFindAndRemoveCondition(t *testing.T) {
	conditions := []fleet.Condition{{Type: "A", Status: "True"}, {Type: "B", Status: "Unknown"}}
	if !fleet.IsConditionTrue(conditions, "A") || fleet.IsConditionTrue(conditions, "B") || fleet.IsConditionTrue(conditions, "C") {
		t.Error("only A is true")
	}
	if fleet.RemoveCondition(&conditions, "C") || !fleet.RemoveCondition(&conditions, "A") {
		t.Error("A was there to remove, C was not")
	}
	if len(conditions) != 1 || fleet.FindCondition(conditions, "B") == nil {
		t.Errorf("left: %v, want B alone", conditions)
	}
}
