package agent_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/apireq"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func TestRestartsAndCorrectsWithoutTheHub(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "a", "1"), configMap(shop, "b", strings.Repeat("x", 100<<10))}, func(bd *fleet.BundleDeployment) {
		bd.Spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true}
	})
	w.start()
	w.until("web", ready)
	w.stop()

	w.hub.Cut(true)
	w.edit(w.must("v1/ConfigMap", shop, "a"), "kubectl", `{"data":{"key":"2"}}`)
	if err := server.client.Delete(w.ctx, w.must("v1/ConfigMap", shop, "b")); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.untilValue(shop, "a", "1")
	w.untilValue(shop, "b", strings.Repeat("x", 100<<10))
	w.edit(w.must("v1/ConfigMap", shop, "a"), "kubectl", `{"data":{"key":"3"}}`)
	w.untilValue(shop, "a", "1")

	w.deploy("web", []string{configMap(shop, "a", "5")})
	w.hub.Cut(false)
	w.until("web", ready)
	w.untilValue(shop, "a", "5")
}

func TestNothingIsRemovedWithoutTheMark(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "a", "1")})
	w.deploy("api", []string{configMap(shop, "b", "1")}, func(bd *fleet.BundleDeployment) { bd.Finalizers = []string{fleet.Finalizer} })
	w.start()
	w.until("web", ready)
	w.until("api", ready)

	for _, name := range []string{"web", "api"} {
		if err := server.client.Delete(w.ctx, w.status(name)); err != nil {
			t.Fatal(err)
		}
	}
	w.until("api", func(bd *fleet.BundleDeployment) error {
		if c := fleet.FindCondition(bd.Status.Conditions, fleet.ConditionDeployed); !strings.Contains(c.Message, "without a removal mark") {
			return fmt.Errorf("conditions: %+v", bd.Status.Conditions)
		}
		return nil
	})
	w.stop()
	w.start()
	w.eventually(func() error {
		lease, err := w.object("coordination.k8s.io/v1/Lease", w.namespace, fleet.AgentName)
		if err != nil {
			return err
		}
		if said := lease.GetAnnotations()[fleet.AgentReportAnnotation]; !strings.Contains(said, `"kubernetesVersion":"v1`) {
			return fmt.Errorf("the agent says %q", said)
		}
		return nil
	})
	w.must("v1/ConfigMap", shop, "a")
	w.must("v1/ConfigMap", shop, "b")
}

func TestRemovalByMark(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	stuck := configMap(shop, "stuck", "1")
	w.deploy("web", []string{configMap(shop, "a", "1"), stuck})
	w.start()
	w.until("web", ready)
	w.edit(w.must("v1/ConfigMap", shop, "stuck"), "someone", `{"metadata":{"finalizers":["example.org/stuck"]}}`)
	mark := func(bd *fleet.BundleDeployment) { bd.Spec.Removal = &fleet.Removal{Reason: "the bundle is gone"} }
	w.deploy("web", nil, mark)
	bd := w.until("web", func(bd *fleet.BundleDeployment) error {
		if bd.Status.RemovalState == nil || !strings.Contains(bd.Status.RemovalState.Message, "example.org/stuck") {
			return fmt.Errorf("removal: %+v", bd.Status.RemovalState)
		}
		return nil
	})
	if bd.Status.RemovalState.Done {
		t.Error("done although an object is left")
	}
	w.edit(w.must("v1/ConfigMap", shop, "stuck"), "someone", `{"metadata":{"finalizers":null}}`)
	w.until("web", func(bd *fleet.BundleDeployment) error {
		if !bd.Status.RemovalState.Done {
			return fmt.Errorf("removal: %+v", bd.Status.RemovalState)
		}
		return nil
	})
	for _, name := range []string{"a", "stuck"} {
		if _, err := w.object("v1/ConfigMap", shop, name); !apierrors.IsNotFound(err) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
	secrets := &corev1.SecretList{}
	if err := server.client.List(w.ctx, secrets, client.InNamespace(w.state)); err != nil || len(secrets.Items) != 0 {
		t.Errorf("state is left: %d %v", len(secrets.Items), err)
	}
}

func TestKeepResources(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "a", "1")}, func(bd *fleet.BundleDeployment) { bd.Spec.Options.KeepResources = true })
	w.start()
	w.until("web", ready)
	w.deploy("web", nil, func(bd *fleet.BundleDeployment) { bd.Spec.Removal = &fleet.Removal{} })
	w.until("web", func(bd *fleet.BundleDeployment) error {
		if bd.Status.RemovalState == nil || !bd.Status.RemovalState.Done {
			return fmt.Errorf("removal: %+v", bd.Status.RemovalState)
		}
		return nil
	})
	w.must("v1/ConfigMap", shop, "a")
}

func TestHolds(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fleet.BundleDeployment)
		state  fleet.BundleState
		want   string
	}{
		"paused":     {func(bd *fleet.BundleDeployment) { bd.Spec.Paused = true }, fleet.WaitApplied, "paused"},
		"values":     {func(bd *fleet.BundleDeployment) { bd.Spec.WaitingForValues = true }, fleet.WaitApplied, "values"},
		"account":    {func(bd *fleet.BundleDeployment) { bd.Spec.Options.ServiceAccount = "dev" }, fleet.WaitApplied, "/dev does not exist on this cluster: create it"},
		"dependency": {func(bd *fleet.BundleDeployment) { bd.Spec.DependsOn = []fleet.BundleRef{{Name: "db"}} }, fleet.WaitApplied, "dependent bundle(s) are not ready: db (not on this cluster)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.deploy("web", []string{configMap(w.ns("shop"), "a", "1")}, test.change)
			w.start()
			bd := w.until("web", in(test.state))
			if message := fleet.FindCondition(bd.Status.Conditions, fleet.ConditionReady).Message; !strings.Contains(message, test.want) {
				t.Errorf("message: %s", message)
			}
			if _, err := w.object("v1/ConfigMap", w.ns("shop"), "a"); !apierrors.IsNotFound(err) {
				t.Errorf("it was deployed: %v", err)
			}
		})
	}
}

func TestDependencyIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "web", "1")}, func(bd *fleet.BundleDeployment) { bd.Spec.DependsOn = []fleet.BundleRef{{Name: "db"}} })
	w.start()
	w.until("web", in(fleet.WaitApplied))
	w.deploy("db", []string{configMap(shop, "db", "1")})
	w.until("web", ready)
}

func TestGenerationThatGoesBackHolds(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "a", "1")})
	w.deploy("web", []string{configMap(shop, "a", "2")})
	w.start()
	w.until("web", ready)
	w.stop()
	// A restored backup: the same object, an older generation. The API server
	// allows no such write, so the agent's record is moved ahead instead.
	w.ahead()
	w.deploy("web", []string{configMap(shop, "a", "1")})
	w.start()
	bd := w.until("web", in(fleet.ErrApplied))
	if message := fleet.FindCondition(bd.Status.Conditions, fleet.ConditionDeployed).Message; !strings.Contains(message, "restored backup") {
		t.Errorf("message: %s", message)
	}
	w.untilValue(shop, "a", "2")
}

// reported matches the agent's report of its cluster.
func reported(r apireq.Request) bool {
	return r.Resource == "configmaps" && r.Name == fleet.CapabilitiesName
}

func TestUnchangedMakesNoWrites(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "a", "1"), configMap(shop, "b", "1")})
	w.start()
	w.until("web", ready)
	w.stop()
	before := w.status("web").ResourceVersion
	w.spoke.Reset()
	w.hub.Reset()
	w.start()
	w.eventually(func() error {
		if len(w.hub.Seen(reported)) == 0 {
			return fmt.Errorf("the agent has not reported yet")
		}
		return nil
	})
	w.never("web", func(bd *fleet.BundleDeployment) bool { return bd.ResourceVersion != before })
	about := func(r apireq.Request) bool { return writes(r) && (r.Namespace == shop || r.Name == "web") }
	if got := append(w.spoke.Seen(about), w.hub.Seen(about)...); len(got) > 0 {
		t.Errorf("written: %v", got)
	}
}

func TestRequestsOfAnInstall(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	var objects []string
	for i := range 9 {
		objects = append(objects, configMap(shop, fmt.Sprintf("cm-%d", i), "1"))
	}
	w.deploy("warm", []string{configMap(shop, "warm", "1"), deployment(shop, "warm")})
	w.start()
	w.until("warm", applied)
	w.eventually(func() error {
		if len(w.hub.Seen(reported)) == 0 {
			return fmt.Errorf("the agent has not reported yet")
		}
		return nil
	})
	w.spoke.Reset()
	w.hub.Reset()
	w.deploy("web", append(objects, deployment(shop, "web")))
	w.until("web", applied)
	aboutWeb := func(r apireq.Request) bool { return r.Resource != "deployments" || r.Name != "warm" }
	spoke := w.spoke.Seen(aboutWeb)
	t.Logf("install: to the spoke %d requests: %v; to the hub %d: %v", len(spoke), spoke, len(w.hub.Seen(all)), w.hub.Seen(all))
	if len(spoke) > 15 {
		t.Errorf("%d requests to the spoke for 10 objects", len(spoke))
	}
}

func TestReportsWhatTheClusterServes(t *testing.T) {
	w := newWorld(t)
	w.start()
	lines := func() []string {
		cm := &corev1.ConfigMap{}
		if err := server.client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: fleet.CapabilitiesName}, cm); err != nil {
			t.Fatal(err)
		}
		return strings.Split(cm.Data[fleet.CapabilitiesAPIsKey], "\n")
	}
	has := func(want string) func() error {
		return func() error {
			if !slices.Contains(lines(), want) {
				return fmt.Errorf("no %q in %d lines", want, len(lines()))
			}
			return nil
		}
	}
	w.eventually(has("v1/Pod N"))
	w.eventually(has("rbac.authorization.k8s.io/v1/ClusterRole C"))
	group := w.namespace + ".example.org"
	w.deploy("kinds", []string{crd(group)})
	w.eventually(has(group + "/v1/Gadget N"))
	lease, err := w.object("coordination.k8s.io/v1/Lease", w.namespace, fleet.AgentName)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := json.Marshal(lease.Object["spec"])
	if !strings.Contains(string(raw), `"holderIdentity":"test"`) || !strings.Contains(string(raw), `"leaseDurationSeconds":60`) {
		t.Errorf("lease: %s", raw)
	}
}
