package deploy

import (
	"fmt"

	"github.com/flotilla-sh/flotilla/internal/agent/state"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Teller tells the people of this cluster what happens to the deployment whose
// record is the Secret record.
type Teller interface {
	Event(record string, warning bool, reason, note string)
}

// tale is how a deployment stands, as far as it is worth telling.
type tale struct {
	state   fleet.BundleState
	applied string
	objects int
	message string
	failed  bool // an object will not become ready by itself
	removal string
	removed bool
}

// event is something that happened.
type event struct {
	warning      bool
	reason, note string
}

// tell says what happened to a deployment since it was told of last.
func (c *Controller) tell(j job, d Decision) {
	now, ok := c.taleOf(j, d)
	if !ok || now == j.told || c.teller == nil {
		return
	}
	bundle := j.bundle()
	for _, e := range news(j.told, now) {
		c.teller.Event(state.SecretName(bundle), e.warning, e.reason, "bundle "+bundle.Bundle+": "+e.note)
	}
	c.update(j.name, func(j *job) { j.told = now })
}

// taleOf sums a job up. With the hub away it is what is wanted last that counts.
func (c *Controller) taleOf(j job, d Decision) (tale, bool) {
	if j.desired == nil && j.record == nil {
		return tale{}, false
	}
	s, err := j.statusOf(d, c.clock.Now())
	if err != nil {
		return tale{}, false
	}
	t := tale{state: fleet.BundleState(s.Display.State), applied: s.AppliedDeploymentID, objects: s.InventoryCount}
	if r := fleet.FindCondition(s.Conditions, fleet.ConditionReady); r != nil {
		t.message = r.Message
	}
	for _, n := range s.NonReadyStatus {
		t.failed = t.failed || n.Summary.Error
	}
	if r := s.RemovalState; r != nil {
		t.removal, t.removed = r.Message, r.Done
	}
	return t, true
}

// news returns what happened between two tales.
func news(before, now tale) []event {
	switch {
	case now.removed:
		return changed(!before.removed, event{reason: "Removed", note: sentence("is removed from this cluster", now.removal)})
	case now.removal != "":
		return changed(before.removal != now.removal, event{reason: "Removing", note: "is being removed: " + now.removal})
	}
	var out []event
	if now.applied != "" && now.applied != before.applied {
		out = append(out, event{reason: "Deployed", note: fmt.Sprintf("%s deployed (%s)", objects(now.objects), now.applied)})
	}
	said := before.state == now.state && before.message == now.message
	switch now.state {
	case fleet.ErrApplied:
		out = append(out, changed(!said, event{warning: true, reason: "NotDeployed", note: now.message})...)
	case fleet.WaitApplied:
		out = append(out, changed(!said && now.message != "", event{reason: "Waiting", note: now.message})...)
	case fleet.Modified:
		out = append(out, changed(!said, event{warning: true, reason: "Modified", note: now.message})...)
	case fleet.NotReady:
		out = append(out, changed(now.failed && !said, event{warning: true, reason: "NotReady", note: now.message})...)
	case fleet.Ready:
		out = append(out, changed(before.state == fleet.Modified, event{reason: "AsApplied", note: "everything is as it was applied again"})...)
		out = append(out, changed(before.state == fleet.NotReady, event{reason: "Ready", note: "everything is ready"})...)
	}
	return out
}

func changed(is bool, e event) []event {
	if !is {
		return nil
	}
	return []event{e}
}

func sentence(text, more string) string {
	if more == "" {
		return text
	}
	return text + ": " + more
}

func objects(n int) string {
	if n == 1 {
		return "1 object is"
	}
	return fmt.Sprintf("%d objects are", n)
}
