package soak_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// TestBackupTakesNothingBack restores the deployments of a hub from a backup:
// what a cluster has since is not made older, by agents that watch and by agents
// that poll, and the hub deploys on from there.
func TestBackupTakesNothingBack(t *testing.T) {
	for name, seed := range map[string]uint64{"watching": 3, "polling": 1} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := worldInMemory(t, seed, 1, virtual)
				w.start()
				app("b1", traits{})(w)
				w.converge()
				restore := w.memory[0].Backup(schema.GroupResource{Group: fleet.Group, Resource: "bundledeployments"})
				upgrade("b1")(w)
				w.converge()
				w.hub.halt()
				restore()
				time.Sleep(10 * time.Minute)
				list := &fleet.BundleDeploymentList{}
				w.must(w.direct.hub.List(context.Background(), list))
				for _, bd := range list.Items {
					if c := fleet.FindCondition(bd.Status.Conditions, fleet.ConditionDeployed); c == nil || !strings.Contains(c.Message, "older than what runs here") {
						w.fail("the agent does not say that the hub has gone back: %+v", bd.Status)
					}
				}
				w.hub.start(context.Background())
				upgrade("b1")(w)
				w.converge()
				w.stop()
				time.Sleep(time.Hour)
				w.end()
			})
		})
	}
}
