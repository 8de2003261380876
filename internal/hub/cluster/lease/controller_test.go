package lease

import (
	"encoding/json"
	"strings"
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
	_, s.again = s.take(types.NamespacedName{Name: "c"}, s.cluster, s.lease)
}

// say makes the agent say something of itself with its next heartbeat.
func (s *story) say(text string) {
	metav1.SetMetaDataAnnotation(&s.lease.ObjectMeta, fleet.AgentReportAnnotation, text)
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
		"never reported":                   {func(s *story) { s.wait(time.Hour) }, ""},
		"never reported, hub starts again": {func(s *story) { s.wait(time.Hour); s.restart(); s.look(); s.wait(time.Hour) }, ""},
		"the Lease is made anew":           {func(s *story) { s.beats(2); s.lease.Spec.RenewTime = nil; s.look() }, metav1.ConditionUnknown},
		"reports":                          {func(s *story) { s.beats(3) }, metav1.ConditionTrue},
		"two heartbeats missed":            {func(s *story) { s.beats(2); s.wait(3*beat - 1) }, metav1.ConditionTrue},
		"three heartbeats missed":          {offline, metav1.ConditionFalse},
		"silent for long":                  {func(s *story) { offline(s); s.wait(24 * time.Hour) }, metav1.ConditionFalse},
		"comes back":                       {func(s *story) { offline(s); s.beats(1) }, metav1.ConditionTrue},
		"agent's clock a day behind":       {func(s *story) { s.skew = -24 * time.Hour; s.beats(2) }, metav1.ConditionTrue},
		"agent's clock a day ahead":        {func(s *story) { s.skew = 24 * time.Hour; offline(s) }, metav1.ConditionFalse},
		"agent's clock is set back":        {func(s *story) { s.skew = time.Hour; s.beats(2); s.skew = 0; s.beats(1) }, metav1.ConditionTrue},
		"no heartbeat told: a minute":      {func(s *story) { s.lease.Spec.LeaseDurationSeconds = nil; s.beats(1); s.wait(2 * time.Minute) }, metav1.ConditionTrue},

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
			if got == nil {
				got = &fleet.Condition{}
			}
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
	if !passes(func() { s.say(`{"namespace":"agents"}`) }) {
		t.Error("what an agent says of itself is not looked at")
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

func TestWhatAnAgentSaysIsChecked(t *testing.T) {
	for name, tt := range map[string]struct{ says, refused string }{
		"nothing":              {"", ""},
		"an empty report":      {`{}`, ""},
		"what agents say":      {`{"namespace":"cattle-fleet-system","kubernetesVersion":"v1.36.3+k3s1","unknownDeployments":2}`, ""},
		"of a newer agent":     {`{"namespace":"agents","weather":"fair"}`, ""},
		"no JSON":              {`namespace`, "is not read"},
		"another type":         {`{"namespace":1}`, "is not read"},
		"a quarter of a MB":    {`{"namespace":"` + strings.Repeat("x", 256<<10) + `"}`, "is longer than 1024 bytes"},
		"no name of namespace": {`{"namespace":"../x"}`, "has a namespace"},
		"colours in a version": {`{"kubernetesVersion":"\u001b[31mv1"}`, "has a kubernetesVersion"},
		"a long version":       {`{"kubernetesVersion":"v` + strings.Repeat("1", 63) + `"}`, "has a kubernetesVersion"},
		"less than none":       {`{"unknownDeployments":-1}`, "below 0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory()
			s.say(`{"namespace":"before"}`)
			s.beats(1)
			s.say(tt.says)
			s.beats(1)
			got := fleet.FindCondition(s.cluster.Status.Conditions, fleet.ConditionOnline)
			refused := got.Reason == fleet.ReasonReportRefused
			if got.Status != metav1.ConditionTrue || refused != (tt.refused != "") || !strings.Contains(got.Message, tt.refused) || len(got.Message) > 400 {
				t.Errorf("Online is %+v, want a word of %q", got, tt.refused)
			}
			if kept := s.cluster.Status.Agent.Namespace == "before"; kept != (refused || tt.says == "") {
				t.Errorf("the Cluster says %+v", s.cluster.Status.Agent)
			}
			s.say(`{"namespace":"after"}`)
			s.beats(1)
			got = fleet.FindCondition(s.cluster.Status.Conditions, fleet.ConditionOnline)
			if got.Reason != fleet.ReasonOnline || got.Message != "" || s.cluster.Status.Agent.Namespace != "after" {
				t.Errorf("after all: %+v, %+v", got, s.cluster.Status.Agent)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	says := func(r fleet.AgentReport) string {
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	one := fleet.AgentReport{Namespace: "agents", KubernetesVersion: "v1.36.0", UnknownDeployments: 2}
	other := fleet.AgentReport{Namespace: "agents", KubernetesVersion: "v1.37.0"}
	for name, tt := range map[string]struct {
		story func(*story)
		want  fleet.AgentReport
		// age is how old the time is at which the agent was seen.
		age time.Duration
	}{
		"nothing said":             {func(s *story) { s.beats(3) }, fleet.AgentReport{}, 2 * beat},
		"said":                     {func(s *story) { s.say(says(one)); s.beats(1) }, one, 0},
		"goes on":                  {func(s *story) { s.say(says(one)); s.beats(30) }, one, 29 * beat},
		"goes on for long":         {func(s *story) { s.say(says(one)); s.beats(100) }, one, 9 * beat},
		"news":                     {func(s *story) { s.say(says(one)); s.beats(3); s.say(says(other)); s.beats(1) }, other, 0},
		"no news any more":         {func(s *story) { s.say(says(one)); s.beats(1); s.say(""); s.beats(1) }, one, beat},
		"said before the hub came": {func(s *story) { s.say(says(one)); s.renew(); s.clock.Step(beat); s.restart(); s.look() }, one, beat},
		"a clock that is ahead":    {func(s *story) { s.skew = time.Hour; s.say(says(one)); s.beats(1) }, one, 0},
		"goes offline":             {func(s *story) { s.say(says(one)); s.beats(5); s.wait(3 * beat) }, one, 3 * beat},
		"the hub starts again":     {func(s *story) { s.say(says(one)); s.beats(5); s.restart(); s.look() }, one, 4 * beat},
		"not JSON":                 {func(s *story) { s.say(`{"namespace":1}`); s.beats(1) }, fleet.AgentReport{}, 0},
		"too long":                 {func(s *story) { s.say(says(fleet.AgentReport{Namespace: strings.Repeat("x", 2000)})); s.beats(1) }, fleet.AgentReport{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory()
			tt.story(s)
			is := s.cluster.Status
			got := fleet.AgentReport{Namespace: is.Agent.Namespace, KubernetesVersion: is.Agent.KubernetesVersion, UnknownDeployments: is.UnknownDeployments}
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if age := s.clock.Since(is.Agent.LastSeen.Time); age != tt.age {
				t.Errorf("was seen %s ago, want %s", age, tt.age)
			}
		})
	}
}
