package deploy

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// near makes a neighbour in a state.
func near(name string, state fleet.BundleState, change ...func(*neighbour)) neighbour {
	n := neighbour{
		name: name, bundle: name, namespace: "ns", labels: map[string]string{"name": name, "tier": "base"},
		state: func() fleet.BundleState { return state },
	}
	for _, c := range change {
		c(&n)
	}
	return n
}

func on(deps ...fleet.BundleRef) func(*neighbour) {
	return func(n *neighbour) { n.dependsOn = deps }
}

func leaving(n *neighbour) { n.leaving = true }

func TestUnmet(t *testing.T) {
	byName := fleet.BundleRef{Name: "db"}
	byTier := fleet.BundleRef{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "base"}}}
	both := fleet.BundleRef{Name: "db", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "other"}}}
	for name, test := range map[string]struct {
		deps []fleet.BundleRef
		all  []neighbour
		want string
	}{
		"nothing":                       {},
		"ready":                         {[]fleet.BundleRef{byName}, []neighbour{near("db", fleet.Ready)}, ""},
		"not ready":                     {[]fleet.BundleRef{byName}, []neighbour{near("db", fleet.NotReady)}, "db"},
		"modified is not ready":         {[]fleet.BundleRef{byName}, []neighbour{near("db", fleet.Modified)}, "db"},
		"modified is accepted":          {[]fleet.BundleRef{{Name: "db", AcceptedStates: []fleet.BundleState{fleet.Ready, fleet.Modified}}}, []neighbour{near("db", fleet.Modified)}, ""},
		"ready is not accepted":         {[]fleet.BundleRef{{Name: "db", AcceptedStates: []fleet.BundleState{fleet.Modified}}}, []neighbour{near("db", fleet.Ready)}, "db"},
		"missing":                       {[]fleet.BundleRef{byName}, []neighbour{near("api", fleet.Ready)}, "db (not on this cluster)"},
		"of another workspace":          {[]fleet.BundleRef{byName}, []neighbour{near("db", fleet.Ready, func(n *neighbour) { n.namespace = "other" })}, "db (not on this cluster)"},
		"is being removed":              {[]fleet.BundleRef{byName}, []neighbour{near("db", fleet.Ready, leaving)}, "db"},
		"all of a selector, not itself": {[]fleet.BundleRef{byTier}, []neighbour{near("web", fleet.NotReady), near("db", fleet.Ready), near("api", fleet.Ready)}, ""},
		"one of a selector":             {[]fleet.BundleRef{byTier}, []neighbour{near("db", fleet.Ready), near("api", fleet.WaitApplied)}, "api"},
		"nothing of a selector":         {[]fleet.BundleRef{byTier}, []neighbour{near("web", fleet.Ready)}, "tier=base (nothing on this cluster matches)"},
		"name and selector":             {[]fleet.BundleRef{both}, []neighbour{near("db", fleet.Ready)}, "db (not on this cluster)"},
		"several":                       {[]fleet.BundleRef{byName, {Name: "api"}}, []neighbour{near("db", fleet.NotReady)}, "api (not on this cluster), db"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(unmet(near("web", fleet.WaitApplied, on(test.deps...)), test.all), ", "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestDependents(t *testing.T) {
	byName := func(name string) fleet.BundleRef { return fleet.BundleRef{Name: name} }
	for name, test := range map[string]struct {
		self neighbour
		all  []neighbour
		want string
	}{
		"nobody depends on it":          {near("db", fleet.Ready, leaving), []neighbour{near("web", fleet.Ready, leaving)}, ""},
		"what depends on it goes first": {near("db", fleet.Ready, leaving), []neighbour{near("web", fleet.Ready, leaving, on(byName("db")))}, "web"},
		"what depends on it stays":      {near("db", fleet.Ready, leaving), []neighbour{near("web", fleet.Ready, on(byName("db")))}, ""},
		"the last one waits for none":   {near("web", fleet.Ready, leaving, on(byName("db"))), []neighbour{near("db", fleet.Ready, leaving)}, ""},
		"a circle":                      {near("db", fleet.Ready, leaving, on(byName("web"))), []neighbour{near("web", fleet.Ready, leaving, on(byName("db")))}, ""},
		"a circle of three":             {near("a", fleet.Ready, leaving, on(byName("b"))), []neighbour{near("b", fleet.Ready, leaving, on(byName("c"))), near("c", fleet.Ready, leaving, on(byName("a")))}, ""},
		"itself, by a selector":         {near("a", fleet.Ready, leaving, on(fleet.BundleRef{Selector: &metav1.LabelSelector{}})), []neighbour{near("a", fleet.Ready, leaving, on(fleet.BundleRef{Selector: &metav1.LabelSelector{}}))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(dependents(test.self, test.all), ", "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestConditionsTellWhenItHappened(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	ready := func(ok bool, message string) fleet.Condition {
		c := fleet.Condition{Type: "Ready", Status: metav1.ConditionFalse, Message: message}
		if ok {
			c.Status = metav1.ConditionTrue
		}
		return c
	}
	var hub []fleet.Condition
	fleet.SetCondition(&hub, ready(true, ""), at(0))
	known := remember(nil, hub, at(0))
	// The hub is away; something breaks after ten minutes, and gets worse.
	known = remember(known, []fleet.Condition{ready(false, "one")}, at(10))
	known = remember(known, []fleet.Condition{ready(false, "two")}, at(20))
	// It is back after an hour.
	j := &job{since: known}
	j.setCondition(&hub, ready(false, "two"), at(60))
	if got := hub[0]; got.LastTransitionTime != at(10).Format(time.RFC3339) || got.LastUpdateTime != at(20).Format(time.RFC3339) {
		t.Errorf("got %+v", got)
	}
	// What happens now is told as of now.
	j.setCondition(&hub, ready(true, ""), at(61))
	if got := hub[0]; got.LastTransitionTime != at(61).Format(time.RFC3339) {
		t.Errorf("got %+v", got)
	}
}
