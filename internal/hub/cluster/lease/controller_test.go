package lease

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/flotilla-sh/flotilla/internal/names"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const beat = 10 * time.Second

// story is one cluster as the hub sees it, told in steps.
type story struct {
	*Controller
	clock   *clocktesting.FakeClock
	reach   time.Time // since when the API server is in reach
	cluster *fleet.Cluster
	lease   *coordinationv1.Lease
	skew    time.Duration // of the agent's clock
	again   time.Duration
}

func (s *story) Since() time.Time { return s.reach }

func newStory() *story {
	s := &story{clock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)), cluster: &fleet.Cluster{}}
	s.lease = &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: ptr.To(int32(beat / time.Second))}}
	s.restart()
	return s
}

// restart is a hub that starts: it has seen nothing yet.
func (s *story) restart() {
	s.Controller = &Controller{Contact: s, Clock: s.clock, seen: map[types.NamespacedName]sight{}}
	s.reach = s.clock.Now()
}

func (s *story) renew() {
	s.lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(s.clock.Now().Add(s.skew)))
}

// look judges and writes down the verdict, as Reconcile does.
func (s *story) look() {
	condition, again := s.judge(types.NamespacedName{Name: "c"}, s.cluster, s.lease)
	fleet.SetCondition(&s.cluster.Status.Conditions, condition, s.clock.Now())
	s.again = again
}

// wait lets time pass without a heartbeat; the hub looks at the end.
func (s *story) wait(d time.Duration) {
	s.clock.Step(d)
	s.look()
}

// beats are heartbeats, each seen.
func (s *story) beats(n int) {
	for range n {
		s.clock.Step(beat)
		s.renew()
		s.look()
	}
}

func TestJudge(t *testing.T) {
	offline := func(s *story) { s.beats(2); s.wait(3 * beat) }
	for name, tt := range map[string]struct {
		story func(*story)
		want  metav1.ConditionStatus
	}{
		"never reported":              {func(s *story) { s.wait(time.Hour) }, metav1.ConditionUnknown},
		"reports":                     {func(s *story) { s.beats(3) }, metav1.ConditionTrue},
		"two heartbeats missed":       {func(s *story) { s.beats(2); s.wait(3*beat - 1) }, metav1.ConditionTrue},
		"three heartbeats missed":     {offline, metav1.ConditionFalse},
		"silent for long":             {func(s *story) { offline(s); s.wait(24 * time.Hour) }, metav1.ConditionFalse},
		"comes back":                  {func(s *story) { offline(s); s.beats(1) }, metav1.ConditionTrue},
		"agent's clock a day behind":  {func(s *story) { s.skew = -24 * time.Hour; s.beats(2) }, metav1.ConditionTrue},
		"agent's clock a day ahead":   {func(s *story) { s.skew = 24 * time.Hour; offline(s) }, metav1.ConditionFalse},
		"agent's clock is set back":   {func(s *story) { s.skew = time.Hour; s.beats(2); s.skew = 0; s.beats(1) }, metav1.ConditionTrue},
		"no heartbeat told: a minute": {func(s *story) { s.lease.Spec.LeaseDurationSeconds = nil; s.beats(1); s.wait(2 * time.Minute) }, metav1.ConditionTrue},

		"hub just started, old lease": {func(s *story) {
			s.renew()
			s.clock.Step(time.Hour)
			s.restart()
			s.look()
		}, metav1.ConditionTrue},
		"hub started and nothing came": {func(s *story) {
			s.renew()
			s.clock.Step(time.Hour)
			s.restart()
			s.look()
			s.wait(3 * beat)
		}, metav1.ConditionFalse},
		"offline, hub started again": {func(s *story) { offline(s); s.restart(); s.look() }, metav1.ConditionFalse},
		"offline, hub started again and looks twice": {func(s *story) {
			offline(s)
			s.restart()
			s.look()
			s.wait(time.Second)
		}, metav1.ConditionFalse},
		"offline, hub started again, comes back": {func(s *story) { offline(s); s.restart(); s.look(); s.beats(1) }, metav1.ConditionTrue},

		"API server away for an hour": {func(s *story) {
			s.beats(2)
			s.clock.Step(time.Hour)
			s.reach = s.clock.Now()
			s.look()
		}, metav1.ConditionTrue},
		"API server back, agent silent": {func(s *story) {
			s.beats(2)
			s.clock.Step(time.Hour)
			s.reach = s.clock.Now()
			s.wait(3 * beat)
		}, metav1.ConditionFalse},
		"offline before the API server was away": {func(s *story) {
			offline(s)
			s.clock.Step(time.Hour)
			s.reach = s.clock.Now()
			s.look()
		}, metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory()
			tt.story(s)
			got := fleet.FindCondition(s.cluster.Status.Conditions, fleet.ConditionOnline)
			if got.Status != tt.want {
				t.Errorf("Online is %s (%s), want %s", got.Status, got.Message, tt.want)
			}
			if got.Status == metav1.ConditionTrue && (s.again <= 0 || s.again > 3*time.Minute) {
				t.Errorf("looks again after %s, want when it could be offline", s.again)
			}
		})
	}
}

func TestOfflineTellsTheLastReport(t *testing.T) {
	s := newStory()
	s.beats(1)
	s.wait(time.Hour)
	want := fleet.Condition{Type: "Online", Status: "False", Reason: "Offline",
		Message: "the agent is silent; it last reported at 2026-01-01T12:00:10Z"}
	got := *fleet.FindCondition(s.cluster.Status.Conditions, fleet.ConditionOnline)
	got.LastUpdateTime, got.LastTransitionTime = "", ""
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestOnlyNewsIsLookedAt is what a thousand clusters at rest cost the hub: a
// heartbeat of a cluster that is online is noted, and keeps it online.
func TestOnlyNewsIsLookedAt(t *testing.T) {
	s := newStory()
	key := types.NamespacedName{Namespace: "fleet-default", Name: "c"}
	s.lease.Namespace, s.lease.Name = names.ClusterNamespace(key.Namespace, key.Name), fleet.AgentName
	s.lease.Annotations = map[string]string{fleet.ClusterLabel: key.Name, fleet.ClusterNamespaceLabel: key.Namespace}
	look := func() metav1.ConditionStatus {
		condition, _ := s.judge(key, s.cluster, s.lease)
		fleet.SetCondition(&s.cluster.Status.Conditions, condition, s.clock.Now())
		return condition.Status
	}
	passes := func(change func()) bool {
		before := s.lease.DeepCopy()
		change()
		return s.news().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: s.lease})
	}
	beats := func() { s.clock.Step(beat); s.renew() }

	if !passes(beats) || look() != metav1.ConditionTrue {
		t.Fatal("the first heartbeat is not looked at")
	}
	for range 5 {
		if passes(beats) {
			t.Fatal("a heartbeat of a cluster that is online is looked at")
		}
	}
	if s.clock.Step(2 * beat); look() != metav1.ConditionTrue {
		t.Error("heartbeats that were noted do not count")
	}
	if !passes(func() { s.lease.Spec.LeaseDurationSeconds = ptr.To(int32(300)) }) {
		t.Error("another interval is not looked at")
	}
	if s.lease.Spec.RenewTime = nil; look() != metav1.ConditionUnknown {
		t.Fatal("a Lease that was made anew is taken for one that was renewed")
	}
	if !passes(beats) || look() != metav1.ConditionTrue {
		t.Error("the first heartbeat after the Lease was made anew is not looked at")
	}
	if s.clock.Step(time.Hour); look() != metav1.ConditionFalse {
		t.Fatal("an hour of silence is not offline")
	}
	forged := s.lease.DeepCopy()
	forged.Namespace = "cluster-of-another"
	if got := clusterOf(t.Context(), forged); got != nil {
		t.Errorf("the Lease of another cluster speaks for %s", got)
	}
	if !passes(beats) || look() != metav1.ConditionTrue {
		t.Error("the heartbeat that brings a cluster back is not looked at")
	}
}
