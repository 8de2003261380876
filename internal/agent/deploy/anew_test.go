package deploy

import (
	"encoding/json"
	"testing"

	"k8s.io/utils/clock"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// TestStatusOfARestoredHub: what a restored hub has counts, although its versions
// are lower than those before.
func TestStatusOfARestoredHub(t *testing.T) {
	c := New(Options{Clock: clock.RealClock{}})
	bd := func(version, applied string) *fleet.BundleDeployment {
		bd := &fleet.BundleDeployment{Status: fleet.BundleDeploymentStatus{AppliedDeploymentID: applied}}
		bd.Name, bd.UID, bd.ResourceVersion = "web", "u", version
		return bd
	}
	reported := func() string {
		var s fleet.BundleDeploymentStatus
		if err := json.Unmarshal(c.jobs["web"].reported, &s); err != nil {
			t.Fatal(err)
		}
		return s.AppliedDeploymentID
	}
	c.Received(bd("5000", "new"))
	c.Received(bd("4000", "late"))
	if got := reported(); got != "new" {
		t.Fatalf("an event that comes late counts: %q", got)
	}
	c.Anew()
	c.Received(bd("1000", "old"))
	if got := reported(); got != "old" || c.jobs["web"].statusVersion != "1000" {
		t.Errorf("the hub has %q of version %s", got, c.jobs["web"].statusVersion)
	}
}
