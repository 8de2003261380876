package deployment

import (
	"testing"
	"time"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	digestA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func want(digest string, change ...func(*Desired)) Desired {
	d := Desired{Namespace: "ns", Cluster: "c", ClusterNamespace: "reg", Content: fleet.ContentRef{Digest: digest, Name: "c-" + digest[:4]}}
	for _, c := range change {
		c(&d)
	}
	return d
}

func input(desired ...Desired) Input {
	return Input{Bundle: "b", BundleNamespace: "reg", Labels: map[string]string{fleet.CommitLabel: "1"},
		Desired: desired, Known: map[string]bool{"ns": true}, RemovalReason: "gone"}
}

// have is the deployment that an earlier decision created.
func have(change ...func(*fleet.BundleDeployment)) fleet.BundleDeployment {
	d := Decide(input(want(digestA))).Create[0]
	for _, c := range change {
		c(d)
	}
	return *d
}

func marked(d *fleet.BundleDeployment)  { d.Spec.Removal = &fleet.Removal{Reason: "gone"} }
func done(d *fleet.BundleDeployment)    { d.Status.RemovalState = &fleet.RemovalStatus{Done: true} }
func runs(d *fleet.BundleDeployment)    { d.Status.AppliedDeploymentID = d.Spec.DeploymentID }
func later(d *fleet.BundleDeployment)   { d.Generation = 7 }
func deleted(d *fleet.BundleDeployment) { d.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
func held(d *Desired)                   { d.Held = true }
func paused(d *Desired)                 { d.Paused = true }

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		in   Input
		have []fleet.BundleDeployment
		want counts
		mark bool
	}{
		"new cluster":                        {in: input(want(digestA)), want: counts{create: 1}},
		"nothing changed":                    {in: input(want(digestA)), have: list(have()), want: counts{}},
		"new content":                        {in: input(want(digestB)), have: list(have()), want: counts{update: 1}},
		"held cluster without deployment":    {in: input(want(digestA, held)), want: counts{}},
		"held cluster keeps what it runs":    {in: input(want(digestB, held)), have: list(have()), want: counts{}},
		"not targeted any more":              {in: input(), have: list(have()), want: counts{update: 1, removing: 1}, mark: true},
		"not targeted, marked":               {in: input(), have: list(have(marked)), want: counts{removing: 1}},
		"not targeted, removed":              {in: input(), have: list(have(marked, done)), want: counts{release: 1}},
		"not targeted, an old mark removed":  {in: input(), have: list(have(marked, done, later)), want: counts{removing: 1}},
		"cluster is not known":               {in: unknown(input()), have: list(have()), want: counts{orphans: 1}},
		"cluster is not known, deleted":      {in: unknown(input()), have: list(have(deleted)), want: counts{release: 1}},
		"targeted again while marked":        {in: input(want(digestA)), have: list(have(marked)), want: counts{update: 1}},
		"targeted again after it was gone":   {in: input(want(digestA)), have: list(have(marked, done)), want: counts{release: 1}},
		"somebody deleted it":                {in: input(want(digestA)), have: list(have(deleted)), want: counts{release: 1}},
		"somebody deleted it and it must go": {in: input(), have: list(have(deleted)), want: counts{update: 1, removing: 1}, mark: true},
	} {
		t.Run(name, func(t *testing.T) {
			tc.in.Existing = tc.have
			plan := Decide(tc.in)
			if got := countsOf(plan); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			for _, u := range plan.Update {
				if (u.New.Spec.Removal != nil) != tc.mark {
					t.Errorf("removal mark is %v", u.New.Spec.Removal)
				}
			}
		})
	}
}

func TestUnreported(t *testing.T) {
	for name, tc := range map[string]struct {
		want Desired
		have []fleet.BundleDeployment
		is   bool
	}{
		"a new cluster":                   {want: want(digestA), is: true},
		"a new cluster that is held":      {want: want(digestA, held)},
		"all runs":                        {want: want(digestA), have: list(have(runs))},
		"not reported yet":                {want: want(digestA), have: list(have()), is: true},
		"something new":                   {want: want(digestB), have: list(have(runs)), is: true},
		"something new is held":           {want: want(digestB, held), have: list(have(runs))},
		"something new waits for a pause": {want: want(digestB, paused), have: list(have(runs)), is: true},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(tc.want)
			in.Existing = tc.have
			if got := Decide(in).Unreported; got != tc.is {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestCommitAloneIsNoReasonToWrite(t *testing.T) {
	in := input(want(digestA))
	in.Existing = list(have())
	in.Labels = map[string]string{fleet.CommitLabel: "2"}
	if plan := Decide(in); !plan.Empty() {
		t.Errorf("got %+v", countsOf(plan))
	}
}

func TestPausedStagesWithoutPromoting(t *testing.T) {
	in := input(want(digestB, paused))
	in.Existing = list(have())
	next := Decide(in).Update[0].New
	if next.Spec.Content.Digest != digestA || next.Spec.StagedDeploymentID == "" || next.Spec.StagedDeploymentID == next.Spec.DeploymentID {
		t.Errorf("got %+v", next.Spec)
	}
	in = input(want(digestB))
	in.Existing = list(*next)
	next = Decide(in).Update[0].New
	if next.Spec.Content.Digest != digestB || next.Spec.StagedDeploymentID != "" {
		t.Errorf("after the pause: %+v", next.Spec)
	}
}

func TestDecisionIsStable(t *testing.T) {
	for _, digest := range []string{digestA, digestB} {
		in := input(want(digest))
		in.Existing = list(have())
		if plan := Decide(in); len(plan.Update) > 0 {
			in.Existing = list(*plan.Update[0].New)
		}
		if plan := Decide(in); !plan.Empty() {
			t.Errorf("deciding again wants %+v", countsOf(plan))
		}
	}
}

func TestDriftSettingsDoNotDeployAgain(t *testing.T) {
	plain := ID(digestA, fleet.BundleDeploymentOptions{})
	if plain != ID(digestA, fleet.BundleDeploymentOptions{CorrectDrift: &fleet.CorrectDrift{Enabled: true}}) {
		t.Error("correctDrift changes the deployment ID")
	}
	if plain == ID(digestA, fleet.BundleDeploymentOptions{ForceSyncGeneration: 1}) {
		t.Error("forceSyncGeneration does not change the deployment ID")
	}
}

type counts struct{ create, update, release, removing, orphans int }

func countsOf(p Plan) counts {
	return counts{len(p.Create), len(p.Update), len(p.Release), len(p.Removing), p.Orphans}
}

func list(all ...fleet.BundleDeployment) []fleet.BundleDeployment { return all }

func unknown(in Input) Input {
	in.Known = nil
	return in
}
