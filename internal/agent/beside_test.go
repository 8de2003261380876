package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func TestDoesNothingBesideRancherFleet(t *testing.T) {
	w := newWorld(t)
	shop, rancher := w.ns("shop"), w.ns("rancher")
	w.apply(fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", rancher))
	w.apply(deployment(rancher, "fleet-agent"))
	replicas := func(ready int) {
		patch := fmt.Sprintf(`{"status":{"replicas":%[1]d,"readyReplicas":%[1]d,"observedGeneration":1}}`, ready)
		live := w.must("apps/v1/Deployment", rancher, "fleet-agent")
		if err := server.client.Status().Patch(w.ctx, live, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	replicas(1)
	w.neighbours = []string{rancher}
	w.deploy("web", []string{configMap(shop, "a", "1")})
	w.start()
	bd := w.until("web", in(fleet.ErrApplied))
	if message := deployedMessage(bd); !strings.Contains(message, "the agent of Rancher Fleet runs on this cluster (deployment "+rancher+"/fleet-agent)") {
		t.Errorf("message: %s", message)
	}
	w.said("Warning", "NotDeployed", "the agent of Rancher Fleet runs on this cluster")
	w.absent("v1/ConfigMap", shop, "a")

	replicas(0)
	begin := time.Now()
	w.until("web", ready)
	t.Logf("went on after %s", time.Since(begin))
	w.untilValue(shop, "a", "1")

	// What is found at the start holds a removal as well.
	w.stop()
	replicas(1)
	w.start()
	w.deploy("web", nil, marked)
	w.until("web", removing("the agent of Rancher Fleet runs on this cluster"))
	w.untilValue(shop, "a", "1")
	w.stop()
	w.neighbours = nil
	w.start()
	w.until("web", gone)
}
