package deploy

import (
	"time"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// since is when a condition became what it is, as the agent saw it: a hub that
// was away is told the time of what happened, not the time of the report.
type since struct {
	condition        fleet.Condition
	updated, changed time.Time
}

// remember notes the conditions of a status that was put together now.
func remember(known map[string]since, conditions []fleet.Condition, now time.Time) map[string]since {
	out := make(map[string]since, len(conditions))
	for _, c := range conditions {
		old, ok := known[c.Type]
		next := since{condition: c, updated: now, changed: now}
		if ok && old.condition.Status == c.Status {
			next.changed = old.changed
			if sameCondition(old.condition, c) {
				next.updated = old.updated
			}
		}
		out[c.Type] = next
	}
	return out
}

func sameCondition(a, b fleet.Condition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// setCondition sets a condition as of the time when it became so.
func (j *job) setCondition(conditions *[]fleet.Condition, want fleet.Condition, now time.Time) {
	known, ok := j.since[want.Type]
	if !ok || known.condition.Status != want.Status {
		fleet.SetCondition(conditions, want, now)
		return
	}
	at := now
	if sameCondition(known.condition, want) {
		at = known.updated
	}
	old := fleet.FindCondition(*conditions, want.Type)
	turned := old == nil || old.Status != want.Status
	if fleet.SetCondition(conditions, want, at) && turned {
		fleet.FindCondition(*conditions, want.Type).LastTransitionTime = known.changed.UTC().Format(time.RFC3339)
	}
}
