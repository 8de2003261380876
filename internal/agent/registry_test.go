package agent_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/flotilla-sh/flotilla/internal/content/registry"
	"github.com/flotilla-sh/flotilla/internal/content/registry/registrytest"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// registrySecret is the Secret from which an agent learns where content is.
const registrySecret = "flotilla-registry-test"

// useRegistry makes the hub of a world store content in a registry.
func (w *world) useRegistry(password string) *registrytest.Server {
	w.t.Helper()
	server := registrytest.Start(w.t, true)
	access, _, err := registry.Accesses(server.Data())
	if err != nil {
		w.t.Fatal(err)
	}
	if w.registry, err = registry.Open(access, clock.RealClock{}); err != nil {
		w.t.Fatal(err)
	}
	w.create(w.access(server, password))
	return server
}

func (w *world) access(server *registrytest.Server, password string) *corev1.Secret {
	data := server.Data()
	data["password"] = []byte(password)
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: registrySecret}, Data: data}
}

// refusedWith is satisfied once a deployment is not applied for this reason.
func refusedWith(want string) func(*fleet.BundleDeployment) error {
	return func(bd *fleet.BundleDeployment) error {
		c := fleet.FindCondition(bd.Status.Conditions, fleet.ConditionDeployed)
		if c == nil || !strings.Contains(c.Message, want) {
			return fmt.Errorf("conditions: %+v", bd.Status.Conditions)
		}
		return nil
	}
}

func TestContentFromARegistry(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	server := w.useRegistry(registrytest.Password)
	secret := fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {namespace: %s, name: s}\nstringData: {key: hidden}\n", shop)
	correct := func(bd *fleet.BundleDeployment) { bd.Spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true} }
	w.deploy("web", []string{configMap(shop, "a", "1"), configMap(shop, "b", strings.Repeat("x", 100<<10)), secret}, correct)
	w.start()
	bd := w.until("web", ready)
	if f := bd.Status.Fetched; f == nil || f.Bytes == 0 || f.Payloads != 4 {
		t.Errorf("fetched: %+v", f)
	}
	w.must("v1/Secret", shop, "s")
	w.stop()

	// Without the registry and the hub the agent has all that it needs.
	w.hub.Cut(true)
	server.Stop()
	w.edit(w.must("v1/ConfigMap", shop, "a"), "kubectl", `{"data":{"key":"2"}}`)
	w.start()
	w.untilValue(shop, "a", "1")
	w.stop()

	// A new version waits for the registry; what runs stays.
	server.Resume()
	w.deploy("web", []string{configMap(shop, "a", "5"), configMap(shop, "b", strings.Repeat("x", 100<<10))}, correct)
	server.Stop()
	w.hub.Cut(false)
	w.start()
	w.until("web", refusedWith("does not answer"))
	w.untilValue(shop, "a", "1")

	// It comes by itself once the registry answers again.
	server.Resume()
	w.until("web", ready)
	w.untilValue(shop, "a", "5")
}

func TestRegistryThatRefusesTheAgent(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.useRegistry("wrong")
	w.deploy("web", []string{configMap(shop, "a", "1")})
	w.start()
	w.until("web", refusedWith("refuses the credentials of \"flotilla\""))
	if _, err := w.object("v1/ConfigMap", shop, "a"); !apierrors.IsNotFound(err) {
		t.Errorf("something was applied: %v", err)
	}
}
