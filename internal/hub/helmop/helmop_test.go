package helmop

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/charts"
	"github.com/flotilla-sh/flotilla/internal/fault"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func opWith(repo, chart, version string) *fleet.HelmOp {
	op := &fleet.HelmOp{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "op"}}
	op.Spec.Helm = &fleet.HelmOptions{Repo: repo, Chart: chart, Version: version}
	return op
}

func TestCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		op   *fleet.HelmOp
		want string
	}{
		"repository":         {opWith("https://charts.example", "app", "^1"), ""},
		"registry":           {opWith("oci://r.example/app", "", ""), ""},
		"archive":            {opWith("", "https://charts.example/app-1.tgz", ""), ""},
		"nothing":            {&fleet.HelmOp{}, "names no chart"},
		"no names":           {opWith("", "", "1"), "names no chart"},
		"a path":             {opWith("", "./app", ""), "a path"},
		"repository, no app": {opWith("https://charts.example", "", ""), "name a chart"},
	} {
		err := check(tt.op)
		if (err != nil) != (tt.want != "") || err != nil && (!strings.Contains(err.Error(), tt.want) || fault.KindOf(err) != fault.Stalled) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func TestLooks(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	op := opWith("https://charts.example", "app", "^1")
	l := &looks{}
	expect := func(what string, at time.Duration, want charts.Refresh) {
		t.Helper()
		if got := l.refresh(op, nil, start.Add(at)); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	expect("after a start", 0, charts.Keep)
	l.note(op, charts.Keep, nil, start)
	expect("no polling", 100*time.Hour, charts.Keep)
	if l.next(op, start) != 0 {
		t.Error("it is looked at again without being asked for")
	}
	op.Spec.PollingInterval = &metav1.Duration{Duration: time.Hour}
	expect("too early", 59*time.Minute, charts.Keep)
	expect("in time", time.Hour, charts.Newer)
	if next := l.next(op, start.Add(10*time.Minute)); next < 50*time.Minute || next > 55*time.Minute {
		t.Errorf("the next look is in %s", next)
	}
	l.note(op, charts.Newer, errors.New("down"), start.Add(time.Hour))
	expect("after a failure", time.Hour, charts.Newer)
	if next := l.next(op, start.Add(time.Hour)); next < time.Hour {
		t.Errorf("after a failure that only a change can mend it is looked again in %s", next)
	}
	l.note(op, charts.Newer, nil, start.Add(time.Hour))
	expect("done", time.Hour, charts.Keep)
	op.Spec.ForceSyncGeneration = 2
	expect("forced", time.Hour, charts.All)
	l.note(op, charts.All, errors.New("down"), start.Add(time.Hour))
	expect("forced, failed", time.Hour, charts.All)
	l.note(op, charts.All, nil, start.Add(time.Hour))
	expect("forced, done", time.Hour, charts.Keep)
	op.Spec.Helm.Version = "1.0.0"
	if l.next(op, start) != 0 {
		t.Error("an exact version is polled")
	}
}

// TestNoLookAtWhatNamesNoChart: there is nothing to poll before the spec is another.
func TestNoLookAtWhatNamesNoChart(t *testing.T) {
	for name, op := range map[string]*fleet.HelmOp{"no helm": {}, "a path": opWith("", "./app", "^1"), "no names": opWith("", "", "")} {
		op.Spec.PollingInterval = &metav1.Duration{Duration: time.Hour}
		if next := (&looks{}).next(op, time.Now()); next != 0 {
			t.Errorf("%s: looked at again in %s", name, next)
		}
	}
}

// TestForcedWhileTheHubWasAway: the Bundle tells what was done.
func TestForcedWhileTheHubWasAway(t *testing.T) {
	op, have, now := opWith("https://charts.example", "app", "^1"), &fleet.Bundle{}, time.Now()
	op.Spec.ForceSyncGeneration, have.Spec.ForceSyncGeneration = 2, 1
	l := &looks{}
	for _, step := range []struct {
		err  error
		want charts.Refresh
	}{{errors.New("down"), charts.All}, {nil, charts.All}, {nil, charts.Keep}} {
		if got := l.refresh(op, have, now); got != step.want {
			t.Errorf("%v, want %v", got, step.want)
		}
		l.note(op, step.want, step.err, now)
	}
}

func TestDraftHasWhatAHelmOpCanMean(t *testing.T) {
	op := opWith("https://charts.example", "app", "^1")
	op.Spec.Helm.ValuesFiles = []string{"values.yaml"}
	op.Spec.Kustomize, op.Spec.YAML = &fleet.KustomizeOptions{Dir: "x"}, &fleet.YAMLOptions{}
	op.Spec.Resources, op.Spec.ContentsID = []fleet.BundleResource{{Name: "a"}}, "x"
	op.Spec.TargetRestrictions = []fleet.BundleTargetRestriction{{}}
	d := draftOf(op)
	if d.Spec.Resources != nil || d.Spec.ContentsID != "" || d.Spec.Helm.ValuesFiles != nil || d.Spec.Kustomize != nil || d.Spec.YAML != nil || d.Spec.TargetRestrictions != nil {
		t.Errorf("got %+v", d.Spec)
	}
	if len(d.Spec.Targets) != 1 || d.Spec.Targets[0].ClusterGroup != "default" {
		t.Errorf("without targets it goes to %+v", d.Spec.Targets)
	}
	if len(op.Spec.Resources) == 0 || len(op.Spec.Targets) > 0 {
		t.Error("the HelmOp itself was changed")
	}
	op.Spec.Targets = []fleet.BundleTarget{{ClusterName: "a"}}
	if got := draftOf(op).Spec.Targets; got[0].Name != "target000" {
		t.Errorf("got %+v", got)
	}
}
