package deploy

import (
	"errors"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/agent/state"
	"github.com/flotilla-sh/flotilla/internal/fault"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// TestWhatARecordSays: whether what is wanted is applied, and which values the
// last release had, in each state that a release can leave.
func TestWhatARecordSays(t *testing.T) {
	rendered := &state.Rendered{Source: "s", Input: "good"}
	under := func(id string, phase state.Phase, failed string) *state.Release {
		return &state.Release{ID: id, Phase: phase, Failed: failed, Input: "tried"}
	}
	stalled := trouble{id: "v1", err: fault.Stall("TemplateFailed", errors.New("no"))}
	for name, test := range map[string]struct {
		record   state.Record
		stale    bool
		trouble  trouble
		finished bool
		givenUp  bool
		applied  string
		input    string
	}{
		"applied": {record: state.Record{DeploymentID: "v1", Applied: "v1"}, finished: true, applied: "v1", input: "good"},
		"other values are not released yet": {
			record: state.Record{DeploymentID: "v1", Applied: "v1"}, stale: true, finished: true, applied: "v1", input: "good",
		},
		"other values do not render": {
			record: state.Record{DeploymentID: "v1", Applied: "v1"}, stale: true, trouble: stalled, finished: true, input: "good",
		},
		"what failed was before":          {record: state.Record{DeploymentID: "v1", Applied: "v1"}, trouble: stalled, finished: true, applied: "v1", input: "good"},
		"other values are being released": {record: state.Record{DeploymentID: "v1", Release: under("v1", state.Before, "")}},
		"other values have failed":        {record: state.Record{DeploymentID: "v1", Release: under("v1", state.Before, "no")}, givenUp: true, input: "tried"},
		"other values are being undone":   {record: state.Record{DeploymentID: "v1", Release: under("v1", state.Undo, "no")}, givenUp: true, input: "tried"},
		"other values were undone": {
			record: state.Record{DeploymentID: "v1", Applied: "v1", Release: under("v1", state.Over, "no")}, givenUp: true, input: "tried",
		},
		"a newer one was begun":   {record: state.Record{DeploymentID: "v2", Applied: "v1", Release: under("v2", state.Objects, "")}, applied: "v1"},
		"a newer one has failed":  {record: state.Record{DeploymentID: "v2", Applied: "v1", Release: under("v2", state.Objects, "no")}, applied: "v1"},
		"a newer one was undone":  {record: state.Record{DeploymentID: "v2", Applied: "v1", Release: under("v2", state.Over, "no")}, finished: true, applied: "v1", input: "good"},
		"it is removed meanwhile": {record: state.Record{DeploymentID: "v1", Removing: true}},
	} {
		t.Run(name, func(t *testing.T) {
			desired := &fleet.BundleDeployment{}
			desired.Spec.DeploymentID, desired.Spec.Content = "v1", &fleet.ContentRef{Digest: "s", Source: true}
			desired.Spec.Options.Helm = &fleet.HelmOptions{ValuesFrom: []fleet.ValuesFrom{{}}}
			test.record.Rendered = rendered
			j := job{desired: desired, record: &test.record, stale: test.stale, trouble: test.trouble}
			if j.finished() != test.finished || j.givenUp() != test.givenUp || j.appliedID() != test.applied || j.usedInput() != test.input {
				t.Errorf("finished %v, given up %v, applied %q, input %q; want %v, %v, %q, %q",
					j.finished(), j.givenUp(), j.appliedID(), j.usedInput(), test.finished, test.givenUp, test.applied, test.input)
			}
			if facts := j.facts(true, j.arrived); facts.Finished != (test.finished && !test.stale) || (facts.Failed != "") != test.givenUp {
				t.Errorf("facts: %+v", facts)
			}
			j.desired = nil
			if input := j.usedInput(); input != "" {
				t.Errorf("without the hub: %q", input)
			}
		})
	}
}
