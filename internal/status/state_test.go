package status_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/status"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Every combination of what can be wrong has the state that the first rule
// that applies gives it.
func TestStateOfEverySubset(t *testing.T) {
	faults := []struct {
		name  string
		apply modifier
	}{
		{"unapplied", unapplied},
		{"deploy failed", says(fleet.ConditionDeployed, "x")},
		{"unready", unready},
		{"given up", says(fleet.ConditionInstalled, "x")},
		{"staged", staged},
		{"drifted", drifted},
	}
	for set := range 1 << len(faults) {
		var names []string
		var changes []modifier
		has := map[string]bool{}
		for i, f := range faults {
			if set&(1<<i) != 0 {
				names, changes, has[f.name] = append(names, f.name), append(changes, f.apply), true
			}
		}
		want := fleet.Ready
		switch {
		case has["unapplied"] && has["deploy failed"]:
			want = fleet.ErrApplied
		case has["unapplied"]:
			want = fleet.WaitApplied
		case has["unready"] && has["given up"]:
			want = fleet.ErrApplied
		case has["unready"]:
			want = fleet.NotReady
		case has["staged"]:
			want = fleet.OutOfSync
		case has["drifted"]:
			want = fleet.Modified
		}
		if got := status.StateOf(deployment("b", "c", changes...)); got != want {
			t.Errorf("%v: %s, want %s", names, got, want)
		}
	}
	if got := status.StateOf(deployment("b", "c", nothingStaged)); got != fleet.Ready {
		t.Errorf("nothing staged: %s", got)
	}
}

func TestMessageOf(t *testing.T) {
	deployed, installed, monitored := says(fleet.ConditionDeployed, "d"), says(fleet.ConditionInstalled, "i"), says(fleet.ConditionMonitored, "m")
	fine := func(bd *fleet.BundleDeployment) {
		bd.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionDeployed, Status: metav1.ConditionTrue, Message: "all is well"}}
	}
	for name, test := range map[string]struct {
		changes []modifier
		want    string
	}{
		"nothing to say":                       {nil, ""},
		"deployed first":                       {[]modifier{monitored, installed, deployed}, "d"},
		"then installed":                       {[]modifier{monitored, installed}, "i"},
		"installed speaks of what was applied": {[]modifier{monitored, installed, unapplied}, "m"},
		"monitored last":                       {[]modifier{monitored}, "m"},
		"what is true is no trouble":           {[]modifier{fine}, ""},
	} {
		if got := status.MessageOf(deployment("b", "c", test.changes...)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestObjectTexts(t *testing.T) {
	m := fleet.ModifiedStatus{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "web", Name: "front"}
	with := func(change func(*fleet.ModifiedStatus)) fleet.ModifiedStatus {
		x := m
		change(&x)
		return x
	}
	for want, given := range map[string]fleet.ModifiedStatus{
		"deployment.apps web/front missing":             with(func(m *fleet.ModifiedStatus) { m.Create = true }),
		"deployment.apps web/front is not owned by us":  with(func(m *fleet.ModifiedStatus) { m.Create, m.Exist = true, true }),
		"deployment.apps web/front extra":               with(func(m *fleet.ModifiedStatus) { m.Delete = true }),
		`deployment.apps web/front modified {"a":1}`:    with(func(m *fleet.ModifiedStatus) { m.Patch = `{"a":1}` }),
		"deployment.apps web/front modified by kubectl": with(func(m *fleet.ModifiedStatus) { m.By = []fleet.FieldOwner{{Manager: "kubectl"}} }),
		"namespace.v1 web missing":                      {APIVersion: "v1", Kind: "Namespace", Name: "web", Create: true},
	} {
		if got := status.ModifiedText(given); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	n := fleet.NonReadyStatus{APIVersion: "v1", Kind: "Pod", Namespace: "web", Name: "a"}
	n.Summary.Transitioning, n.Summary.Error, n.Summary.Message = true, true, []string{"one", "two"}
	if got, want := status.NonReadyText(n), "pod.v1 web/a [progressing,error] one, two"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What a roll-up repeats is small and holds no secret.
func TestContributionIsLean(t *testing.T) {
	var many []fleet.ModifiedStatus
	for range 10 {
		many = append(many, fleet.ModifiedStatus{APIVersion: "v1", Kind: "Secret", Name: "s", Patch: "hunter2",
			Fields: []fleet.FieldDrift{{Path: "data.a", Live: "hunter2"}}})
	}
	c := status.ContributionOf(deployment("b", "c", modifiedBy(many...)))
	if len(c.Detail.Modified) != 4 || c.Detail.Modified[0].Patch != "" || c.Detail.Modified[0].Fields != nil {
		t.Errorf("%+v", c.Detail)
	}
	if many[0].Patch == "" {
		t.Error("the deployment itself was changed")
	}
	if c := status.ContributionOf(deployment("b", "c", says(fleet.ConditionMonitored, "x"))); c.Detail != nil {
		t.Errorf("a ready deployment has something to say: %+v", c.Detail)
	}
}
