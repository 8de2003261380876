package agent_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// deployedMessage returns what the condition Deployed says.
func deployedMessage(bd *fleet.BundleDeployment) string {
	if c := fleet.FindCondition(bd.Status.Conditions, fleet.ConditionDeployed); c != nil {
		return c.Message
	}
	return ""
}

func TestImmutableFields(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	immutable := func(value string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: %s, name: cm}\nimmutable: true\ndata: {key: %q}\n", shop, value)
	}
	w.deploy("web", []string{immutable("1")})
	w.start()
	w.until("web", ready)
	w.deploy("web", []string{immutable("2")})
	bd := w.until("web", in(fleet.ErrApplied))
	if message := deployedMessage(bd); !strings.Contains(message, "ConfigMap "+shop+"/cm") || !strings.Contains(message, "immutable") {
		t.Errorf("message: %s", message)
	}
	w.deploy("web", []string{immutable("2")}, func(bd *fleet.BundleDeployment) { bd.Spec.Options.Helm = &fleet.HelmOptions{Force: true} })
	w.until("web", ready)
	w.untilValue(shop, "cm", "2")
}

func TestKeepPolicy(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	kept := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: %s, name: kept, annotations: {helm.sh/resource-policy: keep}}\n", shop)
	unpruned := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: %s, name: unpruned, annotations: {objectset.rio.cattle.io/prune: \"false\"}}\n", shop)
	w.deploy("web", []string{configMap(shop, "a", "1"), kept, unpruned})
	w.start()
	w.until("web", ready)
	w.deploy("web", []string{configMap(shop, "a", "1")})
	bd := w.until("web", ready)
	if held := bd.Status.HeldObjects; len(held) != 2 || held[0].Name != "kept" || held[1].Name != "unpruned" {
		t.Errorf("held: %+v", held)
	}
	w.must("v1/ConfigMap", shop, "kept")
	w.must("v1/ConfigMap", shop, "unpruned")
}

func TestRefusedSecretIsNamedWithoutItsValues(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {namespace: %s, name: s}\ndata: {password: hunter2hunter2!}\n", shop)})
	w.start()
	bd := w.until("web", in(fleet.ErrApplied))
	message := deployedMessage(bd)
	if !strings.Contains(message, "Secret "+shop+"/s: the API server refused the Secret") || strings.Contains(message, "hunter2") {
		t.Errorf("message: %s", message)
	}
}

func TestNamespaces(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*world, *fleet.BundleDeployment)
		object func(*world) string
		want   string
		lands  string
	}{
		"missing, and not to be made": {
			change: func(_ *world, bd *fleet.BundleDeployment) { no := false; bd.Spec.Options.CreateNamespace = &no },
			object: func(w *world) string { return configMap(w.ns("shop"), "a", "1") },
			want:   "does not exist and createNamespace is false",
		},
		"forced": {
			change: func(w *world, bd *fleet.BundleDeployment) { bd.Spec.Options.TargetNamespace = w.ns("forced") },
			object: func(w *world) string { return configMap(w.ns("shop"), "a", "1") },
			lands:  "forced",
		},
		"default": {
			change: func(w *world, bd *fleet.BundleDeployment) { bd.Spec.Options.DefaultNamespace = w.ns("def") },
			object: func(*world) string {
				return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {key: \"1\"}\n"
			},
			lands: "def",
		},
		"a cluster-scoped object is forced": {
			change: func(w *world, bd *fleet.BundleDeployment) { bd.Spec.Options.TargetNamespace = w.ns("forced") },
			object: func(w *world) string {
				return fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: %s}\n", w.ns("role"))
			},
			want: "it has no namespace, and the bundle's option namespace forces everything",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.deploy("web", []string{test.object(w)}, func(bd *fleet.BundleDeployment) { test.change(w, bd) })
			w.start()
			if test.want != "" {
				if message := deployedMessage(w.until("web", in(fleet.ErrApplied))); !strings.Contains(message, test.want) {
					t.Errorf("message: %s", message)
				}
				return
			}
			w.until("web", ready)
			w.untilValue(w.ns(test.lands), "a", "1")
		})
	}
}

func TestObjectThatIsThereTwice(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "a", "1"), configMap(shop, "a", "2")})
	w.start()
	if message := deployedMessage(w.until("web", in(fleet.ErrApplied))); !strings.Contains(message, "ConfigMap "+shop+"/a: the bundle has it twice") {
		t.Errorf("message: %s", message)
	}
}

func TestNothingIsPrunedWhileSomethingFails(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "old", "1")})
	w.start()
	w.until("web", ready)
	broken := fmt.Sprintf("apiVersion: example.org/v1\nkind: Widget\nmetadata: {namespace: %s, name: w}\n", shop)
	w.deploy("web", []string{configMap(shop, "new", "1"), broken})
	w.until("web", in(fleet.ErrApplied))
	w.must("v1/ConfigMap", shop, "old")
	w.deploy("web", []string{configMap(shop, "new", "1")})
	w.until("web", ready)
	if _, err := w.object("v1/ConfigMap", shop, "old"); !apierrors.IsNotFound(err) {
		t.Errorf("old is still there: %v", err)
	}
}

func TestWorkloadBecomesReady(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{deployment(shop, "web")})
	w.start()
	bd := w.until("web", in(fleet.NotReady))
	if n := bd.Status.NonReadyStatus; len(n) != 1 || n[0].Name != "web" || !n[0].Summary.Transitioning {
		t.Errorf("not ready: %+v", n)
	}
	live := w.must("apps/v1/Deployment", shop, "web")
	rolledOut := `{"status":{"observedGeneration":1,"replicas":2,"updatedReplicas":2,"readyReplicas":2,"availableReplicas":2,
		"conditions":[{"type":"Available","status":"True"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}}`
	err := server.client.Status().Patch(w.ctx, live, client.RawPatch("application/merge-patch+json", []byte(rolledOut)), client.FieldOwner("kube-controller-manager"))
	if err != nil {
		t.Fatal(err)
	}
	w.until("web", ready)
}

// gadgets makes a kind in two versions, and returns how an object of the older
// one is written, and what takes that version away where such an object is there.
func (w *world) gadgets() (gadget func(name string, size int) string, drop func(name string)) {
	w.t.Helper()
	group := w.namespace + ".example.org"
	w.apply(strings.Replace(crd(group), "  - name: v1\n", `  - name: v1beta1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v1
`, 1))
	gadget = func(name string, size int) string {
		return fmt.Sprintf("apiVersion: %s/v1beta1\nkind: Gadget\nmetadata: {namespace: %s, name: %s}\nspec: {size: %d}\n", group, w.ns("shop"), name, size)
	}
	return gadget, func(name string) {
		w.t.Helper()
		w.edit(w.must("apiextensions.k8s.io/v1/CustomResourceDefinition", "", "gadgets."+group), "kubectl",
			`{"spec":{"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`)
		w.eventually(func() error {
			if _, err := w.object(group+"/v1beta1/Gadget", w.ns("shop"), name); err == nil {
				return fmt.Errorf("the old version is still served")
			}
			return nil
		})
	}
}

// TestObjectOfAVersionThatIsServedNoMore: an object that was applied in a
// version that a newer definition has dropped is still the bundle's, and goes
// with it.
func TestObjectOfAVersionThatIsServedNoMore(t *testing.T) {
	w := newWorld(t)
	shop, gadgets := w.ns("shop"), w.namespace+".example.org/v1/Gadget"
	gadget, drop := w.gadgets()
	w.deploy("web", []string{configMap(shop, "a", "1"), gadget("dropped", 1), gadget("goes", 1)})
	w.deploy("more", []string{configMap(shop, "b", "1"), gadget("removed", 1)})
	w.start()
	for _, bundle := range []string{"web", "more"} {
		w.until(bundle, applied)
	}
	drop("dropped")
	w.deploy("web", []string{configMap(shop, "a", "1")})
	w.deploy("more", nil, marked)
	w.until("web", ready)
	w.until("more", gone)
	for _, name := range []string{"dropped", "goes", "removed"} {
		w.absent(gadgets, shop, name)
	}
}

// TestVersionThatGoesWhileItIsWanted: a change in a version that is served no
// more fails, and the object stays the bundle's, and goes with it.
func TestVersionThatGoesWhileItIsWanted(t *testing.T) {
	w := newWorld(t)
	shop, gadgets := w.ns("shop"), w.namespace+".example.org/v1/Gadget"
	gadget, drop := w.gadgets()
	w.deploy("web", []string{configMap(shop, "a", "1"), gadget("changed", 1)})
	w.start()
	w.until("web", applied)
	drop("changed")
	w.deploy("web", []string{configMap(shop, "a", "1"), gadget("changed", 2)})
	w.until("web", func(bd *fleet.BundleDeployment) error {
		if bd.Status.InventoryCount != 2 || !strings.Contains(deployedMessage(bd), "has no kind Gadget in") {
			return fmt.Errorf("an inventory of %d, and it says %q", bd.Status.InventoryCount, deployedMessage(bd))
		}
		return nil
	})
	w.deploy("web", nil, marked)
	w.until("web", gone)
	w.absent(gadgets, shop, "changed")
}
