package deploy

import (
	"slices"
	"testing"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func TestNews(t *testing.T) {
	ready := tale{state: fleet.Ready, applied: "1", objects: 2}
	modified := tale{state: fleet.Modified, applied: "1", objects: 2, message: "ConfigMap a/b modified"}
	for name, tt := range map[string]struct {
		before, now tale
		want        []string
	}{
		"installed":                    {tale{}, ready, []string{"Deployed"}},
		"known from before a restart":  {tale{applied: "1"}, ready, nil},
		"nothing new":                  {ready, ready, nil},
		"upgraded":                     {ready, tale{state: fleet.Ready, applied: "2"}, []string{"Deployed"}},
		"edited":                       {ready, modified, []string{"!Modified"}},
		"edited, said":                 {modified, modified, nil},
		"put back":                     {modified, ready, []string{"AsApplied"}},
		"refused":                      {ready, tale{state: fleet.ErrApplied, applied: "1", message: "no"}, []string{"!NotDeployed"}},
		"refused for another reason":   {tale{state: fleet.ErrApplied, message: "no"}, tale{state: fleet.ErrApplied, message: "never"}, []string{"!NotDeployed"}},
		"waits":                        {tale{}, tale{state: fleet.WaitApplied, message: "for values"}, []string{"Waiting"}},
		"about to begin":               {tale{}, tale{state: fleet.WaitApplied}, nil},
		"rolls out":                    {ready, tale{state: fleet.NotReady, applied: "2", message: "1 of 2"}, []string{"Deployed"}},
		"rolls on":                     {tale{state: fleet.NotReady, applied: "2", message: "1 of 2"}, tale{state: fleet.NotReady, applied: "2", message: "1 of 3"}, nil},
		"fails to roll out":            {tale{state: fleet.NotReady, applied: "2"}, tale{state: fleet.NotReady, applied: "2", message: "deadline", failed: true}, []string{"!NotReady"}},
		"is rolled out":                {tale{state: fleet.NotReady, applied: "2"}, tale{state: fleet.Ready, applied: "2"}, []string{"Ready"}},
		"is being removed":             {ready, tale{state: fleet.Ready, applied: "1", removal: "waits"}, []string{"Removing"}},
		"is removed":                   {tale{removal: "waits"}, tale{removed: true}, []string{"Removed"}},
		"is removed, said":             {tale{removed: true}, tale{removed: true}, nil},
		"deployed with a refused rest": {tale{}, tale{state: fleet.ErrApplied, applied: "", message: "x"}, []string{"!NotDeployed"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range news(tt.before, tt.now) {
				reason := e.reason
				if e.warning {
					reason = "!" + reason
				}
				if e.note == "" {
					t.Errorf("%s says nothing", reason)
				}
				got = append(got, reason)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
