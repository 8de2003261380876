package deploy

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/flotilla-sh/flotilla/internal/agent/state"
	"github.com/flotilla-sh/flotilla/internal/apply"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func ref(version, name string) apply.Ref {
	return apply.Ref{Group: "apps", Version: version, Kind: "Deployment", Namespace: "shop", Name: name}
}

func TestClaimed(t *testing.T) {
	leaving := []apply.Ref{ref("v1", "a"), ref("v1", "b")}
	for name, test := range map[string]struct {
		others []claimant
		want   []apply.Ref
	}{
		"nobody else is here":      {},
		"others have other things": {others: []claimant{{wants: []apply.Ref{ref("v1", "c")}}}},
		"one wants one":            {others: []claimant{{wants: []apply.Ref{ref("v1", "c")}}, {wants: []apply.Ref{ref("v1", "b")}}}, want: leaving[1:]},
		"by another version":       {others: []claimant{{wants: []apply.Ref{ref("v1beta1", "a")}}}, want: leaving[:1]},
		"two want the same":        {others: []claimant{{wants: leaving}, {wants: leaving}}, want: leaving},
	} {
		t.Run(name, func(t *testing.T) {
			if got := claimed(leaving, test.others); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestRefusedObjectsThatWereGivenUpSince has a bundle refused an object while
// the one that had it gives it up, and goes.
func TestRefusedObjectsThatWereGivenUpSince(t *testing.T) {
	a, b := asking{"shop/old", ref("v1", "a")}, asking{"shop/old", ref("v1", "b")}
	for name, test := range map[string]struct {
		asked []asking
		given bool
		left  []asking
		want  bool
	}{
		"still owned":             {asked: []asking{a, b}},
		"given up since":          {asked: []asking{a}, given: true, want: true},
		"its bundle has left it":  {asked: []asking{a, b}, left: []asking{b}, want: true},
		"it has left another one": {asked: []asking{a}, left: []asking{b}},
		"nothing was asked for":   {given: true, left: []asking{a}},
	} {
		t.Run(name, func(t *testing.T) {
			left := func(bundle string, r apply.Ref) bool { return slices.Contains(test.left, asking{bundle, r}) }
			if got := mayBeFree(test.asked, test.given, left); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestUnplanned(t *testing.T) {
	desired := func(change func(*fleet.BundleDeployment)) *fleet.BundleDeployment {
		bd := &fleet.BundleDeployment{}
		bd.Spec.DeploymentID, bd.Spec.Content = "new", &fleet.ContentRef{}
		change(bd)
		return bd
	}
	same := func(*fleet.BundleDeployment) {}
	for name, test := range map[string]struct {
		job  job
		want bool
	}{
		"new":                          {job{desired: desired(same)}, true},
		"a new version":                {job{desired: desired(same), record: &state.Record{DeploymentID: "old"}}, true},
		"begun":                        {job{desired: desired(same), record: &state.Record{DeploymentID: "new"}}, false},
		"paused wants it all the same": {job{desired: desired(func(bd *fleet.BundleDeployment) { bd.Spec.Paused = true })}, true},
		"marked for removal":           {job{desired: desired(func(bd *fleet.BundleDeployment) { bd.Spec.Removal = &fleet.Removal{} })}, false},
		"nothing is promoted":          {job{desired: desired(func(bd *fleet.BundleDeployment) { bd.Spec.DeploymentID = "" })}, false},
		"the hub is away":              {job{record: &state.Record{DeploymentID: "old"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.job.unplanned(); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestSettling(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		s    settling
		want time.Duration
	}{
		"nothing":         {},
		"for a while":     {settling{"id", now.Add(time.Second)}, time.Second},
		"over":            {settling{"id", now.Add(-time.Second)}, 0},
		"of another time": {settling{"old", now.Add(time.Second)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.s.left("id", now); got != test.want {
				t.Error(fmt.Sprint(got))
			}
		})
	}
}
