package agent_test

import (
	"strings"
	"testing"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// TestAcceptedStates lets three bundles depend on a fourth one, in different
// states of it.
func TestAcceptedStates(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	onDB := func(states ...fleet.BundleState) func(*fleet.BundleDeployment) {
		return func(bd *fleet.BundleDeployment) {
			bd.Spec.DependsOn = []fleet.BundleRef{{Name: "db", AcceptedStates: states}}
		}
	}
	waits := says("dependent bundle(s) are not ready: db")
	w.deploy("any", []string{configMap(shop, "any", "1")}, onDB(fleet.NotReady, fleet.Ready, fleet.Modified))
	w.deploy("strict", []string{configMap(shop, "strict", "1")}, onDB())
	w.deploy("odd", []string{configMap(shop, "odd", "1")}, onDB(fleet.Modified))
	w.start()
	w.until("any", says("db (not on this cluster)"))

	w.deploy("db", []string{configMap(shop, "data", "1"), deployment(shop, "db")})
	w.until("db", in(fleet.NotReady))
	w.until("any", ready)
	w.until("strict", waits)
	w.until("odd", waits)
	w.absent("v1/ConfigMap", shop, "strict")

	w.rollOut(shop, "db")
	w.until("db", ready)
	w.until("strict", ready)
	w.until("odd", waits)
	w.absent("v1/ConfigMap", shop, "odd")

	w.edit(w.must("v1/ConfigMap", shop, "data"), "kubectl-edit", `{"data":{"key":"2"}}`)
	w.until("db", in(fleet.Modified))
	w.until("odd", ready)

	// What was let on stays, whatever becomes of what it depends on; what is new
	// waits again.
	w.until("strict", ready)
	w.deploy("strict", []string{configMap(shop, "strict", "2")}, onDB())
	w.until("strict", waits)
	if got := w.must("v1/ConfigMap", shop, "strict").Object["data"].(map[string]any)["key"]; got != "1" {
		t.Errorf("strict is at %v while db is modified", got)
	}
	if message := deployedMessage(w.status("strict")); !strings.Contains(message, "db") {
		t.Errorf("message: %s", message)
	}
}
