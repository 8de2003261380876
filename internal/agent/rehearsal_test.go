package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// gadgets is a definition of Gadgets with these fields.
func gadgets(group, fields string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%[2]s}}}}}
`, group, fields)
}

func gadget(group, namespace, spec string) string {
	return fmt.Sprintf("apiVersion: %s/v1\nkind: Gadget\nmetadata: {namespace: %s, name: g}\nspec: {%s}\n", group, namespace, spec)
}

// TestUpgradeThatPreparesItsCluster upgrades what the cluster refuses as it is,
// and accepts once a part of the same upgrade is done.
func TestUpgradeThatPreparesItsCluster(t *testing.T) {
	hook := func(shop string) string { return job(shop, "prepare", "helm.sh/hook: pre-upgrade") }
	group := func(shop string) string { return shop + ".example.org" }
	for name, test := range map[string]struct {
		before, after func(shop string) []string
		// meanwhile is what controllers and hooks do.
		setUp, meanwhile func(w *world, shop string)
	}{
		"a quota is raised": {
			before: func(shop string) []string { return []string{configMap(shop, "a", "1")} },
			after: func(shop string) []string {
				return []string{quota(shop, 10), configMap(shop, "a", "2"), configMap(shop, "b", "1")}
			},
			setUp: func(w *world, shop string) {
				w.deploy("web", []string{quota(shop, 1), configMap(shop, "a", "1")})
				w.until("web", applied)
				w.enforced(shop, 1)
			},
			meanwhile: func(w *world, shop string) {
				w.eventually(func() error {
					hard, _, _ := unstructured.NestedFieldNoCopy(w.must("v1/ResourceQuota", shop, "small").Object, "spec", "hard")
					if fmt.Sprint(hard) != "map[count/configmaps:10]" {
						return fmt.Errorf("the quota is %v", hard)
					}
					return nil
				})
				w.quotaStatus(shop, 10)
			},
		},
		"a priority class is made for a Pod": {
			before: func(shop string) []string { return []string{configMap(shop, "a", "1")} },
			after: func(shop string) []string {
				return []string{
					configMap(shop, "a", "2"),
					fmt.Sprintf("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: %s}\nvalue: 10\n", shop),
					fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {namespace: %[1]s, name: p}\nspec: {priorityClassName: %[1]s, containers: [{name: app, image: \"app:1\"}]}\n", shop),
				}
			},
		},
		"a policy is relaxed": {
			before: func(shop string) []string { return append(policies(shop, "bad"), configMap(shop, "a", "1")) },
			after: func(shop string) []string {
				return append(policies(shop, "worse"), configMap(shop, "a", "2"), configMap(shop, "bad", "1"))
			},
			setUp: func(w *world, shop string) { w.denied(shop) },
		},
		"a hook deletes what cannot be changed": {
			before: func(shop string) []string { return []string{selecting(shop, "x")} },
			after:  func(shop string) []string { return []string{selecting(shop, "z"), hook(shop)} },
			meanwhile: func(w *world, shop string) {
				w.eventually(func() error { _, err := w.object("batch/v1/Job", shop, "prepare"); return err })
				if err := server.client.Delete(w.ctx, w.must("apps/v1/Deployment", shop, "web")); err != nil {
					w.t.Fatal(err)
				}
				w.end(shop, "prepare", "Complete")
			},
		},
		"a definition gets a field, with waves": {
			before: func(shop string) []string {
				return []string{gadgets(group(shop), "size: {type: integer}"), gadget(group(shop), shop, "size: 1"), inWave("1", configMap(shop, "later", "1"))}
			},
			after: func(shop string) []string {
				return []string{gadgets(group(shop), "color: {type: string}"), gadget(group(shop), shop, "color: red"), inWave("1", configMap(shop, "later", "2"))}
			},
		},
		"a definition gets a value, with a hook": {
			before: func(shop string) []string {
				return []string{gadgets(group(shop), "mode: {type: string, enum: [a]}"), gadget(group(shop), shop, "mode: a"), hook(shop)}
			},
			after: func(shop string) []string {
				return []string{gadgets(group(shop), "mode: {type: string, enum: [a, b]}"), gadget(group(shop), shop, "mode: b"), hook(shop)}
			},
			meanwhile: func(w *world, shop string) { w.end(shop, "prepare", "Complete") },
		},
		"a webhook of the bundle learns with its program": {
			before: func(shop string) []string {
				return []string{gadgets(group(shop), "size: {type: integer}"), gadget(group(shop), shop, "size: 1"), deployment(shop, "operator"), judgeOf(shop, group(shop))}
			},
			after: func(shop string) []string {
				return []string{
					gadgets(group(shop), "size: {type: integer}"), gadget(group(shop), shop, "size: 2"),
					strings.Replace(deployment(shop, "operator"), "replicas: 2", "replicas: 3", 1), judgeOf(shop, group(shop)),
				}
			},
			setUp: func(w *world, shop string) {
				w.eventually(func() error {
					live := w.must(group(shop)+"/v1/Gadget", shop, "g")
					if server.client.Patch(w.ctx, live, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"size":3}}`)), client.DryRunAll) == nil {
						return fmt.Errorf("the webhook is not asked yet")
					}
					return nil
				})
			},
			meanwhile: func(w *world, shop string) {
				w.eventually(func() error {
					if n, _, _ := unstructured.NestedFieldNoCopy(w.must("apps/v1/Deployment", shop, "operator").Object, "spec", "replicas"); n != int64(3) {
						return fmt.Errorf("replicas: %v", n)
					}
					return nil
				})
				if err := server.client.Delete(w.ctx, w.must("admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration", "", shop)); err != nil {
					w.t.Fatal(err)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			shop := w.ns("shop")
			w.deploy("web", test.before(shop))
			w.start()
			w.until("web", applied)
			if test.setUp != nil {
				test.setUp(w, shop)
			}
			w.deploy("web", test.after(shop))
			if test.meanwhile != nil {
				test.meanwhile(w, shop)
			}
			w.until("web", applied)
		})
	}
}

// TestUpgradeThatIsRefusedForCertain has nothing written, although a part of it
// prepares the cluster for others.
func TestUpgradeThatIsRefusedForCertain(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	invalid := strings.Replace(deployment(shop, "web"), "replicas: 2", "replicas: -2", 1)
	w.deploy("hooked", []string{configMap(shop, "a", "1"), deployment(shop, "web")})
	w.deploy("quota", []string{configMap(shop, "b", "1"), selecting(shop+"-2", "x")})
	w.start()
	w.until("hooked", applied)
	w.until("quota", applied)
	w.deploy("hooked", []string{configMap(shop, "a", "2"), invalid, job(shop, "prepare", "helm.sh/hook: pre-upgrade")})
	w.deploy("quota", []string{quota(shop, 10), quota(shop+"-2", 10), configMap(shop, "b", "2"), selecting(shop+"-2", "z")})
	for _, bundle := range []string{"hooked", "quota"} {
		if bd := w.until(bundle, in(fleet.ErrApplied)); !strings.Contains(deployedMessage(bd), "Deployment ") {
			t.Errorf("message: %s", deployedMessage(bd))
		}
	}
	w.absent("batch/v1/Job", shop, "prepare")
	w.absent("v1/ResourceQuota", shop, "small")
	w.untilValue(shop, "a", "1")
	w.untilValue(shop, "b", "1")
}

// judgeOf is a webhook that nobody serves, which judges every change of Gadgets.
func judgeOf(shop, group string) string {
	return fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: hook.%[2]s
  rules: [{apiGroups: [%[2]s], apiVersions: [v1], resources: [gadgets], operations: [UPDATE]}]
  clientConfig: {url: "https://127.0.0.1:1"}
  sideEffects: None
  admissionReviewVersions: [v1]
  failurePolicy: Fail
`, shop, group)
}
