package observe

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/flotilla-sh/flotilla/internal/apply"
)

// driftDelay and healthDelay gather events before an object is read.
const (
	driftDelay  = 20 * time.Millisecond
	healthDelay = 250 * time.Millisecond
)

// group is the watched objects of one deployment.
type group struct {
	owner   apply.Owner
	objects map[apply.Ref]*tracked
	// busy is true while the deployment is being applied: what is seen is
	// judged when the apply is over.
	busy bool
	// pending keeps the last sightings that came while busy.
	pending map[apply.Ref]*Seen
	// awaited are other objects of which any change is told; stirred is true
	// once there was one.
	awaited map[apply.Ref]bool
	stirred bool
	// dressed is the namespace on which the bundle has set something, and
	// touched is true once that was written to.
	dressed string
	touched bool
}

// Tracker holds what is known of the live objects of all deployments.
type Tracker struct {
	clock  clock.PassiveClock
	notify func(label string, after time.Duration)

	mu     sync.Mutex
	groups map[string]*group
}

// NewTracker returns an empty tracker. notify is called, without delay to the
// watch, when a deployment has objects to look at.
func NewTracker(c clock.PassiveClock, notify func(label string, after time.Duration)) *Tracker {
	return &Tracker{clock: c, notify: notify, groups: map[string]*group{}}
}

// Begin says that a deployment is being applied.
func (t *Tracker) Begin(owner apply.Owner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.group(owner)
	g.owner, g.busy = owner, true
	if g.pending == nil {
		g.pending = map[apply.Ref]*Seen{}
	}
}

// Track says what a deployment has now: the inventory is the new baseline.
func (t *Tracker) Track(owner apply.Owner, inventory apply.Inventory) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.groups[owner.Label]
	g := &group{owner: owner, objects: make(map[apply.Ref]*tracked, len(inventory))}
	for _, e := range inventory {
		if e.UID == "" {
			continue
		}
		g.objects[e.Identity()] = continued(old, e)
	}
	t.groups[owner.Label] = g
	look := LookAway
	if old != nil {
		g.awaited, g.stirred = old.awaited, old.stirred
		g.dressed, g.touched = old.dressed, old.touched
		for ref, seen := range old.pending {
			look = max(look, t.sighted(g, ref, seen))
		}
	}
	for _, o := range g.objects {
		look = max(look, o.look)
	}
	if g.touched {
		look = LookDrift
	}
	t.wake(owner.Label, look)
}

// group returns what is known of an owner, which may be nothing yet; mu is held.
func (t *Tracker) group(owner apply.Owner) *group {
	g := t.groups[owner.Label]
	if g == nil {
		g = &group{owner: owner, objects: map[apply.Ref]*tracked{}}
		t.groups[owner.Label] = g
	}
	return g
}

// Await asks to be told of any change of these objects, and of no others that
// are not tracked.
func (t *Tracker) Await(owner apply.Owner, refs []apply.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.group(owner)
	g.awaited = map[apply.Ref]bool{}
	for _, ref := range refs {
		g.awaited[ref] = true
	}
}

// Stirred tells whether an awaited object has changed since it was last asked.
func (t *Tracker) Stirred(label string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.groups[label]
	if g == nil || !g.stirred {
		return false
	}
	g.stirred = false
	return true
}

// stir notes that an awaited object has changed.
func (t *Tracker) stir(g *group, ref apply.Ref) {
	for awaited := range g.awaited {
		if awaited.Identity() == ref.Identity() {
			g.stirred = true
			t.notify(g.owner.Label, 0)
			return
		}
	}
}

// wake asks for a look at a deployment.
func (t *Tracker) wake(label string, look Look) {
	switch look {
	case LookDrift:
		t.notify(label, driftDelay)
	case LookHealth:
		t.notify(label, healthDelay)
	}
}

// continued returns the tracked form of e. What was known of an object whose
// baseline has not moved stays known.
func continued(old *group, e apply.Entry) *tracked {
	if old != nil {
		if o := old.objects[e.Identity()]; o != nil && o.entry == e {
			return o
		}
	}
	accepted := Seen{UID: e.UID, ResourceVersion: e.ResourceVersion, Generation: e.Generation, Fields: e.Fields}
	t := &tracked{entry: e, accepted: accepted}
	if e.Health {
		t.look = LookHealth
	}
	return t
}

// Knows tells whether a deployment is tracked.
func (t *Tracker) Knows(label string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.groups[label] != nil
}

// Tracks tells whether e is the baseline of an object.
func (t *Tracker) Tracks(label string, e apply.Entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.groups[label]
	if g == nil {
		return false
	}
	o := g.objects[e.Identity()]
	return o != nil && o.entry == e
}

// Forget drops a deployment.
func (t *Tracker) Forget(label string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.groups, label)
}

// See takes in what a watch says of an object; nil says that it is gone.
func (t *Tracker) See(label string, ref apply.Ref, meta *metav1.ObjectMeta) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.groups[label]
	if g == nil {
		return
	}
	t.stir(g, ref)
	var seen *Seen
	if meta != nil {
		s := seenOf(meta, g.owner.Manager)
		seen = &s
	}
	if g.busy {
		g.pending[ref.Identity()] = seen
		return
	}
	t.wake(label, t.sighted(g, ref, seen))
}

// sighted judges a sighting and returns the look that it calls for now.
func (t *Tracker) sighted(g *group, ref apply.Ref, seen *Seen) Look {
	o := g.objects[ref.Identity()]
	if o == nil {
		return LookAway
	}
	if seen == nil {
		o.lost()
		return LookDrift
	}
	o.scaledBy = seen.ScaledBy
	if o.accepted.Writes == "" && seen.Fields == o.accepted.Fields {
		o.accepted.Writes = seen.Writes
	}
	look := judge(o, *seen)
	o.look = max(o.look, look)
	if look == LookDrift && o.touched(*seen) {
		o.notBefore = time.Time{}
	}
	if wait := o.notBefore.Sub(t.clock.Now()); wait > 0 && look == LookDrift {
		t.notify(g.owner.Label, wait)
		return LookAway
	}
	return look
}

// gone says that a kind has these objects only: a new list of a watch tells
// what was deleted meanwhile.
func (t *Tracker) gone(kind apply.Ref, have map[apply.Ref]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for label, g := range t.groups {
		look := LookAway
		for ref, o := range g.objects {
			if o.entry.GVK() == kind.GVK() && !have[ref] {
				o.lost()
				look = LookDrift
			}
		}
		for ref := range g.awaited {
			if ref.GVK() == kind.GVK() && !have[ref.Identity()] {
				t.stir(g, ref)
			}
		}
		t.wake(label, look)
	}
}
