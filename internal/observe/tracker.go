package observe

import (
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/digest"
)

const (
	// quietMin and quietMax bound the time between two looks at an object
	// that others write to all the time without touching what is ours.
	quietMin = time.Second
	quietMax = 10 * time.Minute
	// driftDelay and healthDelay gather events before an object is read.
	driftDelay  = 20 * time.Millisecond
	healthDelay = 250 * time.Millisecond
)

// Seen is what a watch says of an object.
type Seen struct {
	UID             string
	ResourceVersion string
	Generation      int64
	// Fields is the digest of the field set that is ours.
	Fields string
	// Writes changes with every write of others that is not to the status.
	Writes string
	// ScaleCeded is true where spec.replicas was written through the scale
	// subresource.
	ScaleCeded bool
}

// SeenOf extracts what matters from an object's metadata.
func SeenOf(meta *metav1.ObjectMeta, manager string) Seen {
	s := Seen{
		UID: string(meta.UID), ResourceVersion: meta.ResourceVersion, Generation: meta.Generation,
		Fields: apply.OwnedFields(meta.ManagedFields, manager),
	}
	if meta.Generation == 0 {
		s.Writes = writesOf(meta.ManagedFields, manager)
	}
	for _, e := range meta.ManagedFields {
		s.ScaleCeded = s.ScaleCeded || e.Subresource == "scale"
	}
	return s
}

// writesOf is a digest of who wrote what and when, status apart.
func writesOf(entries []metav1.ManagedFieldsEntry, manager string) string {
	var parts [][]byte
	for _, e := range entries {
		if e.Subresource == "" && e.Manager != manager && e.FieldsV1 != nil {
			parts = append(parts, []byte(e.Manager), []byte(timeOf(e)), e.FieldsV1.GetRawBytes())
		}
	}
	return digest.Of(parts...)[:16]
}

func timeOf(e metav1.ManagedFieldsEntry) string {
	if e.Time == nil {
		return ""
	}
	return e.Time.String()
}

// Look is why an object is to be read.
type Look int

const (
	// LookAway: it is as it was applied, and nothing has happened to it.
	LookAway Look = iota
	// LookHealth: something was written to it, and its state may have changed.
	LookHealth
	// LookDrift: it may not be as it was applied.
	LookDrift
)

// tracked is one object that is watched.
type tracked struct {
	entry apply.Entry
	// accepted is the state that was last found to be without drift.
	accepted Seen
	look     Look
	// missing is true where a watch said that the object is gone.
	missing bool
	scaled  bool
	// quiet is how long the next look at mere writes of others is put off.
	quiet     time.Duration
	notBefore time.Time
}

// judge names what a sighting of an object calls for.
func judge(t *tracked, seen Seen) Look {
	switch {
	case seen.UID == t.entry.UID && older(seen.ResourceVersion, t.entry.ResourceVersion):
		return LookAway
	case seen.UID != t.accepted.UID, seen.Fields != t.accepted.Fields, seen.Generation != t.accepted.Generation:
		return LookDrift
	case t.accepted.Writes != "" && seen.Writes != t.accepted.Writes:
		return LookDrift
	case t.entry.Health && seen.ResourceVersion != t.accepted.ResourceVersion:
		return LookHealth
	}
	return LookAway
}

// older compares resource versions, which are numbers that grow.
func older(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX == nil && errY == nil && x < y
}

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
		s := SeenOf(meta, g.owner.Manager)
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
		o.look, o.missing = LookDrift, true
		return LookDrift
	}
	o.scaled = seen.ScaleCeded
	if o.accepted.Writes == "" && seen.Fields == o.accepted.Fields {
		o.accepted.Writes = seen.Writes
	}
	look := judge(o, *seen)
	o.look = max(o.look, look)
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
				o.look, o.missing, look = LookDrift, true, LookDrift
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
	o.accepted, o.scaled = seen, seen.ScaleCeded
}

// Live returns what is known of an object without reading it.
func (t *Tracker) Live(label string, ref apply.Ref) apply.Live {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.object(label, ref)
	if o == nil {
		return apply.Live{}
	}
	return apply.Live{Changed: o.look == LookDrift || o.missing, ScaleCeded: o.scaled}
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
