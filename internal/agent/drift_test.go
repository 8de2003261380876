package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// applied is satisfied once the objects are on the cluster, ready or not.
func applied(bd *fleet.BundleDeployment) error {
	if bd.Status.AppliedDeploymentID == "" || bd.Status.AppliedDeploymentID != bd.Spec.DeploymentID {
		return fmt.Errorf("not applied: %+v", bd.Status)
	}
	return nil
}

func modifiedOnce(bd *fleet.BundleDeployment) error {
	if len(bd.Status.ModifiedStatus) != 1 {
		return fmt.Errorf("modified: %+v", bd.Status.ModifiedStatus)
	}
	return nil
}

func TestEditIsShownWithFieldValuesAndProgram(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "a", "1"), configMap(shop, "b", "1")})
	w.start()
	w.until("web", ready)

	w.spoke.Reset()
	edited := time.Now()
	w.edit(w.must("v1/ConfigMap", shop, "a"), "kubectl-edit", `{"data":{"key":"2"}}`)
	bd := w.until("web", in(fleet.Modified))
	t.Logf("shown after %s with %d requests", time.Since(edited).Round(time.Millisecond), len(w.spoke.Seen(all)))
	m := bd.Status.ModifiedStatus[0]
	if len(m.Fields) != 1 || m.Fields[0] != (fleet.FieldDrift{Path: "data.key", Desired: `"1"`, Live: `"2"`}) {
		t.Errorf("fields: %+v", m.Fields)
	}
	if len(m.By) != 1 || m.By[0].Manager != "kubectl-edit" || m.By[0].Operation != "Update" || m.By[0].Time == nil {
		t.Errorf("by: %+v", m.By)
	}
	if requests := w.spoke.Seen(all); len(requests) > 3 {
		t.Errorf("%d requests to the spoke for one edit, want a read, a dry run and an event: %v", len(requests), requests)
	}
	if message := fleet.FindCondition(bd.Status.Conditions, fleet.ConditionReady).Message; !strings.Contains(message, shop+"/a modified") {
		t.Errorf("ready: %s", message)
	}

	w.edit(w.must("v1/ConfigMap", shop, "a"), "kubectl-edit", `{"data":{"key":"1"}}`)
	w.until("web", ready)
}

func TestRemovedFieldsAndObjectsAreDrift(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "a", "1"), configMap(shop, "b", "1")})
	w.start()
	w.until("web", ready)

	w.edit(w.must("v1/ConfigMap", shop, "a"), "kubectl", `{"data":{"key":null}}`)
	bd := w.until("web", modifiedOnce)
	if f := bd.Status.ModifiedStatus[0].Fields[0]; f.Live != "" || f.Desired == "" {
		t.Errorf("field: %+v", f)
	}
	if err := server.client.Delete(w.ctx, w.must("v1/ConfigMap", shop, "b")); err != nil {
		t.Fatal(err)
	}
	w.until("web", func(bd *fleet.BundleDeployment) error {
		if bd.Status.ResourceCounts.Missing != 1 || bd.Status.ResourceCounts.Modified != 1 {
			return fmt.Errorf("counts: %+v", bd.Status.ResourceCounts)
		}
		return nil
	})
}

func TestWhatIsNoDrift(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{deployment(shop, "web"), configMap(shop, "cm", "1")})
	w.start()
	w.until("web", applied)

	live := w.must("apps/v1/Deployment", shop, "web")
	w.edit(live, "someone", `{"metadata":{"labels":{"foreign":"label"}},"spec":{"minReadySeconds":3}}`)
	w.edit(w.must("v1/ConfigMap", shop, "cm"), "someone", `{"data":{"foreign":"key"}}`)
	w.apply(autoscaler(shop, "web"))
	w.scale(live, 5, "kube-controller-manager")
	w.never("web", func(bd *fleet.BundleDeployment) bool { return len(bd.Status.ModifiedStatus) > 0 })

	// An upgrade leaves the number of replicas to the autoscaler as well.
	w.deploy("web", []string{strings.ReplaceAll(deployment(shop, "web"), "app:1", "app:2"), configMap(shop, "cm", "1")})
	w.until("web", applied)
	if got := w.must("apps/v1/Deployment", shop, "web").Object["spec"].(map[string]any)["replicas"]; got != int64(5) {
		t.Errorf("replicas: %v", got)
	}
}

func autoscaler(namespace, name string) string {
	return fmt.Sprintf("apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {namespace: %[1]s, name: %[2]s}\nspec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %[2]s}}\n", namespace, name)
}

// TestScaledByAPerson tells and undoes what was scaled by hand, and what an
// autoscaler that is gone has left.
func TestScaledByAPerson(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	web := func(replicas, image int) []string {
		return []string{strings.NewReplacer("replicas: 2", fmt.Sprint("replicas: ", replicas), "app:1", fmt.Sprint("app:", image)).Replace(deployment(shop, "web"))}
	}
	has := func(want int64) {
		t.Helper()
		live := w.must("apps/v1/Deployment", shop, "web")
		if got, _, _ := unstructured.NestedInt64(live.Object, "spec", "replicas"); got != want {
			t.Errorf("replicas: %d, want %d", got, want)
		}
	}
	w.deploy("web", web(2, 1))
	w.start()
	w.until("web", applied)
	w.scale(w.must("apps/v1/Deployment", shop, "web"), 1, "kubectl")
	bd := w.until("web", modifiedOnce)
	if m := bd.Status.ModifiedStatus[0]; len(m.Fields) != 1 || m.Fields[0].Path != "spec.replicas" || len(m.By) != 1 || m.By[0].Manager != "kubectl" {
		t.Errorf("modified: %+v", m)
	}
	w.deploy("web", web(7, 1))
	w.until("web", applied)
	has(7)

	w.apply(autoscaler(shop, "web"))
	w.scale(w.must("apps/v1/Deployment", shop, "web"), 5, "kube-controller-manager")
	w.never("web", func(bd *fleet.BundleDeployment) bool { return len(bd.Status.ModifiedStatus) > 0 })
	w.deploy("web", web(7, 2))
	w.until("web", applied)
	has(5)
	if err := server.client.Delete(w.ctx, w.must("autoscaling/v2/HorizontalPodAutoscaler", shop, "web")); err != nil {
		t.Fatal(err)
	}
	w.deploy("web", web(7, 3))
	w.until("web", applied)
	has(7)

	w.deploy("web", web(7, 3), func(bd *fleet.BundleDeployment) { bd.Spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true} })
	w.until("web", applied)
	w.scale(w.must("apps/v1/Deployment", shop, "web"), 1, "kubectl")
	w.eventually(func() error {
		if got, _, _ := unstructured.NestedInt64(w.must("apps/v1/Deployment", shop, "web").Object, "spec", "replicas"); got != 7 {
			return fmt.Errorf("replicas: %d", got)
		}
		return nil
	})
}

// never gives the agent time to see what happened, by an edit that it does
// report, and fails if wrong was reported.
func (w *world) never(bundle string, wrong func(*fleet.BundleDeployment) bool) {
	w.t.Helper()
	probe := "probe-" + bundle
	w.deploy(probe, []string{configMap(w.ns("probe"), "probe", "1")})
	w.until(probe, ready)
	w.edit(w.must("v1/ConfigMap", w.ns("probe"), "probe"), "someone", `{"data":{"key":"2"}}`)
	w.until(probe, in(fleet.Modified))
	if bd := w.status(bundle); wrong(bd) {
		w.t.Errorf("status: %+v", bd.Status)
	}
}

func TestDriftIsCorrectedWhereAsked(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "a", "1"), configMap(shop, "b", "1")}, func(bd *fleet.BundleDeployment) {
		bd.Spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true}
	})
	w.start()
	w.until("web", ready)
	w.edit(w.must("v1/ConfigMap", shop, "a"), "kubectl", `{"data":{"key":"2"}}`)
	w.untilValue(shop, "a", "1")
	if err := server.client.Delete(w.ctx, w.must("v1/ConfigMap", shop, "b")); err != nil {
		t.Fatal(err)
	}
	w.untilValue(shop, "b", "1")
	w.until("web", ready)
}

// untilValue waits for the value of the key of a ConfigMap.
func (w *world) untilValue(namespace, name, want string) {
	w.t.Helper()
	w.eventually(func() error {
		obj, err := w.object("v1/ConfigMap", namespace, name)
		if err != nil {
			return err
		}
		if got := obj.Object["data"].(map[string]any)["key"]; got != want {
			return fmt.Errorf("%s/%s has %v, want %s", namespace, name, got, want)
		}
		return nil
	})
}

func TestSecretValuesAreNotShown(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {namespace: %s, name: s}\nstringData: {password: hunter2}\n", shop)})
	w.start()
	w.until("web", ready)
	w.edit(w.must("v1/Secret", shop, "s"), "kubectl", `{"stringData":{"password":"swordfish"}}`)
	bd := w.until("web", modifiedOnce)
	text := fmt.Sprintf("%+v", bd.Status)
	for _, secret := range []string{"hunter2", "aHVudGVyMg==", "swordfish", "c3dvcmRmaXNo"} {
		if strings.Contains(text, secret) {
			t.Errorf("the status shows %s: %s", secret, text)
		}
	}
	if got := bd.Status.ModifiedStatus[0].Fields[0].Path; got != "data.password" {
		t.Errorf("path: %s", got)
	}
}

func TestIgnoredDifferences(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "a", "1")}, func(bd *fleet.BundleDeployment) {
		bd.Spec.Options.Diff = &fleet.DiffOptions{ComparePatches: []fleet.ComparePatch{{
			APIVersion: "v1", Kind: "ConfigMap", Name: "a", Namespace: shop, JsonPointers: []string{"/data"},
		}}}
	})
	w.start()
	w.until("web", ready)
	w.edit(w.must("v1/ConfigMap", shop, "a"), "kubectl", `{"data":{"key":"2"}}`)
	w.never("web", func(bd *fleet.BundleDeployment) bool { return len(bd.Status.ModifiedStatus) > 0 })
}
