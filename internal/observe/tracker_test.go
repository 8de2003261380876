package observe

import (
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-sh/flotilla/internal/apply"
)

const manager = "flotilla-ns/web"

var owner = apply.Owner{Bundle: "ns/web", Label: "l", Manager: manager}

// seenMeta is an object's metadata with the fields that ours owns.
func seenMeta(version, generation string, ours string, others ...metav1.ManagedFieldsEntry) *metav1.ObjectMeta {
	meta := &metav1.ObjectMeta{UID: types.UID("u"), ResourceVersion: version}
	if generation != "" {
		meta.Generation = int64(generation[0] - '0')
	}
	meta.ManagedFields = append(others, entry(manager, metav1.ManagedFieldsOperationApply, "", ours))
	return meta
}

func entry(name string, op metav1.ManagedFieldsOperationType, sub, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: name, Operation: op, Subresource: sub, FieldsV1: metav1.NewFieldsV1(fields)}
}

func TestSightings(t *testing.T) {
	const full, less = `{"f:spec":{"f:a":{},"f:b":{}}}`, `{"f:spec":{"f:a":{}}}`
	update := metav1.ManagedFieldsOperationUpdate
	ref := apply.Ref{Version: "v1", Kind: "Thing", Namespace: "n", Name: "x"}
	for name, test := range map[string]struct {
		health bool
		first  *metav1.ObjectMeta
		then   *metav1.ObjectMeta
		want   Look
	}{
		"our own write":                    {first: seenMeta("10", "1", full), then: seenMeta("10", "1", full), want: LookAway},
		"an event from before our write":   {first: seenMeta("10", "1", full), then: seenMeta("9", "1", less), want: LookAway},
		"the set is smaller":               {first: seenMeta("10", "1", full), then: seenMeta("11", "1", less), want: LookDrift},
		"the generation moved":             {first: seenMeta("10", "1", full), then: seenMeta("11", "2", full), want: LookDrift},
		"gone":                             {first: seenMeta("10", "1", full), want: LookDrift},
		"status of a stateless object":     {first: seenMeta("10", "1", full), then: seenMeta("11", "1", full, entry("kubelet", update, "status", `{"f:status":{}}`)), want: LookAway},
		"status of an object with a state": {health: true, first: seenMeta("10", "1", full), then: seenMeta("11", "1", full, entry("kubelet", update, "status", `{"f:status":{}}`)), want: LookHealth},
		"a write without a generation":     {first: seenMeta("10", "", full), then: seenMeta("11", "", full, entry("kubectl", update, "", `{"f:data":{}}`)), want: LookDrift},
		"status without a generation":      {first: seenMeta("10", "", full), then: seenMeta("11", "", full, entry("kubelet", update, "status", `{"f:status":{}}`)), want: LookAway},
	} {
		t.Run(name, func(t *testing.T) {
			tracker := NewTracker(clocktesting.NewFakePassiveClock(time.Unix(0, 0)), func(string, time.Duration) {})
			base := seenOf(test.first, manager)
			tracker.Track(owner, apply.Inventory{{
				Ref: ref, UID: base.UID, Fields: base.Fields, Generation: base.Generation, ResourceVersion: base.ResourceVersion, Health: test.health,
			}})
			if test.health {
				tracker.Targets("l", false)
			}
			tracker.See("l", ref, test.first)
			tracker.See("l", ref, test.then)
			got := LookAway
			for _, target := range tracker.Targets("l", false) {
				got = target.Look
			}
			if got != test.want {
				t.Errorf("look %d, want %d", got, test.want)
			}
			if live := tracker.Live("l", ref); live.Changed {
				t.Error("a look that was taken is still pending")
			}
		})
	}
}

// TestOursAmongTheWritesOfOthers: an object that others write to all the time is
// looked at rarely, but at once where what is ours was touched.
func TestOursAmongTheWritesOfOthers(t *testing.T) {
	const full, less = `{"f:data":{"f:a":{},"f:b":{}}}`, `{"f:data":{"f:a":{}}}`
	ref := apply.Ref{Version: "v1", Kind: "ConfigMap", Namespace: "n", Name: "x"}
	at := func(version, ours string, clock *clocktesting.FakePassiveClock) *metav1.ObjectMeta {
		leader := entry("leader", metav1.ManagedFieldsOperationUpdate, "", `{"f:metadata":{}}`)
		leader.Time = &metav1.Time{Time: clock.Now()}
		return seenMeta(version, "", ours, leader)
	}
	for name, test := range map[string]struct {
		then func(*Tracker, *clocktesting.FakePassiveClock)
		soon bool
	}{
		"others write again":   {func(tr *Tracker, c *clocktesting.FakePassiveClock) { tr.See("l", ref, at("90", full, c)) }, false},
		"a field is taken":     {func(tr *Tracker, c *clocktesting.FakePassiveClock) { tr.See("l", ref, at("90", less, c)) }, true},
		"a stale sighting":     {func(tr *Tracker, c *clocktesting.FakePassiveClock) { tr.See("l", ref, at("9", less, c)) }, false},
		"it is gone":           {func(tr *Tracker, _ *clocktesting.FakePassiveClock) { tr.See("l", ref, nil) }, true},
		"it is on no new list": {func(tr *Tracker, _ *clocktesting.FakePassiveClock) { tr.gone(ref, nil) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
			tracker := NewTracker(clock, func(string, time.Duration) {})
			first := at("10", full, clock)
			tracker.Track(owner, apply.Inventory{{Ref: ref, UID: "u", ResourceVersion: "10", Fields: seenOf(first, manager).Fields}})
			tracker.See("l", ref, first)
			for i := range 12 { // each time it is found that nothing of ours was touched
				clock.SetTime(clock.Now().Add(11 * time.Minute))
				meta := at(strconv.Itoa(20+i), full, clock)
				tracker.See("l", ref, meta)
				tracker.Targets("l", false)
				tracker.Accept("l", ref, seenOf(meta, manager))
			}
			clock.SetTime(clock.Now().Add(time.Second))
			test.then(tracker, clock)
			if got := len(tracker.Targets("l", false)); got != map[bool]int{true: 1}[test.soon] {
				t.Errorf("%d to look at now", got)
			}
		})
	}
}

func TestWhatIsSeenDuringAnApplyIsJudgedAfterIt(t *testing.T) {
	ref := apply.Ref{Version: "v1", Kind: "Thing", Namespace: "n", Name: "x"}
	tracker := NewTracker(clocktesting.NewFakePassiveClock(time.Unix(0, 0)), func(string, time.Duration) {})
	tracker.Begin(owner)
	tracker.See("l", ref, seenMeta("20", "2", `{"f:a":{}}`))
	after := seenOf(seenMeta("20", "2", `{"f:a":{}}`), manager)
	tracker.Track(owner, apply.Inventory{{Ref: ref, UID: "u", Fields: after.Fields, Generation: 2, ResourceVersion: "20"}})
	if got := tracker.Targets("l", false); len(got) != 0 {
		t.Errorf("our own write is looked at: %+v", got)
	}
	tracker.Begin(owner)
	tracker.See("l", ref, nil)
	tracker.Track(owner, apply.Inventory{{Ref: ref, UID: "u", Fields: after.Fields, Generation: 2, ResourceVersion: "20"}})
	if got := tracker.Targets("l", false); len(got) != 1 {
		t.Errorf("a deletion during an apply is missed: %+v", got)
	}
}

func TestBusyObjectsAreLookedAtLessAndLess(t *testing.T) {
	ref := apply.Ref{Version: "v1", Kind: "ConfigMap", Namespace: "n", Name: "x"}
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	var delays []time.Duration
	tracker := NewTracker(clock, func(_ string, after time.Duration) { delays = append(delays, after) })
	write := func(n int) *metav1.ObjectMeta {
		e := entry("elector", metav1.ManagedFieldsOperationUpdate, "", `{"f:data":{"f:leader":{}}}`)
		e.Time = &metav1.Time{Time: time.Unix(int64(n), 0)}
		return seenMeta(string(rune('1'+n))+"0", "", `{"f:data":{"f:a":{}}}`, e)
	}
	first := seenOf(write(0), manager)
	tracker.Track(owner, apply.Inventory{{Ref: ref, UID: "u", Fields: first.Fields, ResourceVersion: "10"}})
	tracker.See("l", ref, write(0))
	for n := 1; n < 4; n++ {
		tracker.See("l", ref, write(n))
		clock.SetTime(clock.Now().Add(time.Minute))
		for range tracker.Targets("l", false) {
			tracker.Accept("l", ref, seenOf(write(n), manager))
		}
		tracker.See("l", ref, write(n+4))
	}
	last := delays[len(delays)-1]
	if last < 2*time.Second {
		t.Errorf("looked at again after %s only: %v", last, delays)
	}
}

// TestTouchedNamespaces tells of a namespace that a bundle has dressed, once for
// each time that it was written to, and not while the bundle is being applied.
func TestTouchedNamespaces(t *testing.T) {
	woken := 0
	tracker := NewTracker(clocktesting.NewFakePassiveClock(time.Unix(0, 0)), func(string, time.Duration) { woken++ })
	touched := func(want bool) {
		t.Helper()
		if got := tracker.Touched("l", false); got != want {
			t.Errorf("touched: %v", got)
		}
	}
	tracker.Touch("n")
	tracker.Dress(owner, "n")
	touched(false)
	if !tracker.Dresses() || !tracker.Touched("l", true) {
		t.Error("a look at everything leaves the namespace out")
	}
	tracker.Touch("other")
	touched(false)
	tracker.Touch("n")
	touched(true)
	touched(false)
	tracker.Retouch("l")
	touched(true)
	tracker.Begin(owner)
	tracker.Touch("n")
	touched(false)
	woken = 0
	tracker.Track(owner, nil)
	if woken != 1 {
		t.Errorf("woken %d times after the apply", woken)
	}
	touched(true)
	tracker.Dress(owner, "")
	tracker.Touch("n")
	touched(false)
	if tracker.Dresses() || tracker.Touched("l", true) {
		t.Error("it is not dressed any more")
	}
}
