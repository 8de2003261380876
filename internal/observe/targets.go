package observe

import (
	"time"

	"github.com/flotilla-sh/flotilla/internal/apply"
)

// quietMin and quietMax bound the time between two looks at an object that
// others write to all the time without touching what is ours.
const (
	quietMin = time.Second
	quietMax = 10 * time.Minute
)

// Target is an object to look at.
type Target struct {
	Entry apply.Entry
	Look  Look
}

// Targets returns what is to be looked at in a deployment, and forgets that it
// is: what happens from now on calls for another look. With all, every object
// is to be looked at.
func (t *Tracker) Targets(label string, all bool) []Target {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.groups[label]
	if g == nil || g.busy {
		return nil
	}
	var out []Target
	for _, o := range g.objects {
		look := o.look
		if all {
			look = LookDrift
		}
		if look == LookAway || !all && t.clock.Now().Before(o.notBefore) {
			continue
		}
		o.look, o.missing = LookAway, false
		out = append(out, Target{Entry: o.entry, Look: look})
	}
	return out
}

// Retry asks for another look at an object that could not be read.
func (t *Tracker) Retry(label string, target Target) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.object(label, target.Entry.Ref); o != nil {
		o.look = max(o.look, target.Look)
	}
}

// Doubt asks for a look at these objects of a deployment, as nobody knows how
// they are.
func (t *Tracker) Doubt(label string, refs []apply.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, ref := range refs {
		if o := t.object(label, ref); o != nil {
			o.look = max(o.look, LookHealth)
		}
	}
}

// Accept says that an object was looked at in this state and is without drift.
func (t *Tracker) Accept(label string, ref apply.Ref, seen Seen) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.object(label, ref)
	if o == nil {
		return
	}
	if o.accepted.Writes != "" && seen.Writes != o.accepted.Writes && seen.Fields == o.accepted.Fields {
		o.quiet = min(max(2*o.quiet, quietMin), quietMax)
		o.notBefore = t.clock.Now().Add(o.quiet)
	} else {
		o.quiet, o.notBefore = 0, time.Time{}
	}
	o.accepted, o.scaledBy = seen, seen.ScaledBy
}

// Live returns what is known of an object without reading it.
func (t *Tracker) Live(label string, ref apply.Ref) apply.Live {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.object(label, ref)
	if o == nil {
		return apply.Live{}
	}
	return apply.Live{Changed: o.look == LookDrift || o.missing, ScaledBy: o.scaledBy}
}

func (t *Tracker) object(label string, ref apply.Ref) *tracked {
	if g := t.groups[label]; g != nil {
		return g.objects[ref.Identity()]
	}
	return nil
}

// Kinds returns the kinds of all tracked objects.
func (t *Tracker) Kinds() map[apply.Ref]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	kinds := map[apply.Ref]bool{}
	for _, g := range t.groups {
		for _, o := range g.objects {
			kinds[apply.Ref{Group: o.entry.Group, Version: o.entry.Version, Kind: o.entry.Kind}] = true
		}
		for ref := range g.awaited {
			kinds[apply.Ref{Group: ref.Group, Version: ref.Version, Kind: ref.Kind}] = true
		}
	}
	return kinds
}
