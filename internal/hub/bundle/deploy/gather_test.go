package deploy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-sh/flotilla/internal/fault"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func TestPutValues(t *testing.T) {
	for name, tt := range map[string]struct {
		have *fleet.HelmOptions
		raw  string
		want *fleet.HelmOptions
		err  bool
	}{
		"nothing stored":     {have: nil, want: nil},
		"no other options":   {raw: `{"a":1}`, want: &fleet.HelmOptions{Values: &fleet.GenericMap{Data: map[string]any{"a": 1.0}}}},
		"next to the others": {have: &fleet.HelmOptions{Chart: "c"}, raw: `{"a":1}`, want: &fleet.HelmOptions{Chart: "c", Values: &fleet.GenericMap{Data: map[string]any{"a": 1.0}}}},
		"damaged":            {raw: `{`, err: true},
	} {
		t.Run(name, func(t *testing.T) {
			err := putValues(&tt.have, []byte(tt.raw))
			if tt.err {
				if fault.KindOf(err) != fault.Stalled {
					t.Fatalf("error %v, want a stalled one", err)
				}
				return
			}
			if diff := cmp.Diff(tt.want, tt.have); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
