package agent_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func configMap(namespace, name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: %s, name: %s}\ndata: {key: %q}\n", namespace, name, value)
}

func deployment(namespace, name string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {namespace: %s, name: %s}
spec:
  replicas: 2
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec: {containers: [{name: app, image: "app:1"}]}
`, namespace, name)
}

func TestInstallUpgradePrune(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "a", "1"), configMap(shop, "b", "1")})
	w.start()
	first := w.until("web", ready)
	if got := w.must("v1/ConfigMap", shop, "a"); got.GetLabels()[fleet.DeploymentLabel] == "" ||
		got.GetAnnotations()[fleet.BundleAnnotation] != w.namespace+"/web" {
		t.Errorf("the object does not name its owner: %v %v", got.GetLabels(), got.GetAnnotations())
	}
	if first.Status.AppliedDeploymentID != first.Spec.DeploymentID || first.Status.ResourceCounts.Ready != 2 {
		t.Errorf("status: %+v", first.Status)
	}

	kept := w.must("v1/ConfigMap", shop, "a").GetResourceVersion()
	w.deploy("web", []string{configMap(shop, "a", "1"), configMap(shop, "c", "2")})
	w.until("web", ready)
	if _, err := w.object("v1/ConfigMap", shop, "b"); !apierrors.IsNotFound(err) {
		t.Errorf("b left the bundle and is still there: %v", err)
	}
	if w.must("v1/ConfigMap", shop, "a").GetResourceVersion() != kept {
		t.Error("a has not changed and was written")
	}
	w.must("v1/ConfigMap", shop, "c")
}

func TestRefusesForeignObjectsAndGoesOn(t *testing.T) {
	for name, test := range map[string]struct{ meta, want string }{
		"another bundle": {`annotations: {flotilla.sh/bundle: other/api}`, "ConfigMap NS/theirs: it belongs to bundle other/api"},
		"flux":           {`labels: {kustomize.toolkit.fluxcd.io/name: apps, kustomize.toolkit.fluxcd.io/namespace: flux}`, "it belongs to Flux Kustomization flux/apps"},
		"argo":           {`annotations: {argocd.argoproj.io/tracking-id: "shop:/ConfigMap:x/y"}`, "it belongs to Argo CD"},
		"a person":       {`labels: {app.kubernetes.io/instance: x}`, "helm.takeOwnership"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			shop := w.ns("shop")
			w.apply(fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", shop))
			w.apply(fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: %s, name: theirs, %s}\ndata: {key: theirs}\n", shop, test.meta))
			w.deploy("web", []string{configMap(shop, "theirs", "ours"), configMap(shop, "ours", "1")})
			w.start()
			bd := w.until("web", in(fleet.ErrApplied))
			message := fleet.FindCondition(bd.Status.Conditions, fleet.ConditionDeployed).Message
			if want := strings.ReplaceAll(test.want, "NS", shop); !strings.Contains(message, want) {
				t.Errorf("message %q does not say %q", message, want)
			}
			w.must("v1/ConfigMap", shop, "ours")
			if got := w.must("v1/ConfigMap", shop, "theirs"); got.Object["data"].(map[string]any)["key"] != "theirs" {
				t.Error("the foreign object was overwritten")
			}
		})
	}
}

func TestTakesOwnershipCompletely(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.apply(fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", shop))
	w.apply(fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: %s, name: cm}\ndata: {key: old, gone: soon}\n", shop))
	uid := w.must("v1/ConfigMap", shop, "cm").GetUID()
	w.deploy("web", []string{configMap(shop, "cm", "new")}, func(bd *fleet.BundleDeployment) {
		bd.Spec.Options.Helm = &fleet.HelmOptions{TakeOwnership: true}
	})
	w.start()
	w.until("web", ready)
	got := w.must("v1/ConfigMap", shop, "cm")
	if got.GetUID() != uid {
		t.Error("the object was made anew")
	}
	if data := got.Object["data"].(map[string]any); len(data) != 1 || data["key"] != "new" {
		t.Errorf("what Git does not have is still there: %v", data)
	}
}

func TestUnknownKindIsNamedAndTheRestGoesOn(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "a", "1"), fmt.Sprintf("apiVersion: example.org/v1\nkind: Widget\nmetadata: {namespace: %s, name: w}\n", shop)})
	w.start()
	bd := w.until("web", in(fleet.ErrApplied))
	w.must("v1/ConfigMap", shop, "a")
	message := fleet.FindCondition(bd.Status.Conditions, fleet.ConditionDeployed).Message
	if !strings.Contains(message, "Widget "+shop+"/w: this cluster has no kind Widget in example.org/v1") {
		t.Errorf("message: %s", message)
	}
}

func TestKindAndItsObjectsInOneBundle(t *testing.T) {
	w := newWorld(t)
	shop, group := w.ns("shop"), w.namespace+".example.org"
	gadget := fmt.Sprintf("apiVersion: %s/v1\nkind: Gadget\nmetadata: {namespace: %s, name: g}\nspec: {size: 1}\n", group, shop)
	w.deploy("kinds", []string{gadget, crd(group)})
	w.start()
	w.until("kinds", ready)
	w.must(group+"/v1/Gadget", shop, "g")
}

func crd(group string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.%[1]s}
spec:
  group: %[1]s
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, group)
}

func TestHoldsWhatWouldTakeMuchAlong(t *testing.T) {
	w := newWorld(t)
	shop, group := w.ns("shop"), w.namespace+".example.org"
	claim := fmt.Sprintf("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {namespace: %s, name: data}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n", shop)
	namespace := fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", shop)
	w.deploy("web", []string{configMap(shop, "a", "1"), claim, namespace, crd(group)})
	w.start()
	w.until("web", func(bd *fleet.BundleDeployment) error {
		if bd.Status.AppliedDeploymentID != bd.Spec.DeploymentID {
			return fmt.Errorf("not applied: %+v", bd.Status)
		}
		return nil
	})
	w.deploy("web", []string{configMap(shop, "a", "1")})
	bd := w.until("web", ready)
	var held []string
	for _, ref := range bd.Status.HeldObjects {
		held = append(held, ref.Kind)
	}
	if got := strings.Join(held, " "); got != "CustomResourceDefinition Namespace PersistentVolumeClaim" {
		t.Errorf("held: %s", got)
	}
	if got := w.must("v1/PersistentVolumeClaim", shop, "data"); got.GetDeletionTimestamp() != nil || got.GetAnnotations()[fleet.BundleAnnotation] != "" {
		t.Errorf("the claim is not free: %v", got.GetAnnotations())
	}

	w.deploy("other", []string{namespace})
	w.until("other", ready)
}
