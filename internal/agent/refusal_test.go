package agent_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-sh/flotilla/internal/apireq"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// selecting is a Deployment that selects app: value, which cannot be changed.
func selecting(namespace, value string) string {
	return strings.ReplaceAll(deployment(namespace, "web"), "app: x", "app: "+value)
}

func TestRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		// first is made before, and then objects are wanted.
		first, objects func(w *world, shop string) []string
		options        fleet.HelmOptions
		want           []string
		after          func(w *world, shop string)
	}{
		"an immutable field": {
			first:   func(_ *world, shop string) []string { return []string{selecting(shop, "x")} },
			objects: func(_ *world, shop string) []string { return []string{selecting(shop, "z")} },
			want:    []string{"Deployment NS/web: it cannot be changed in place: ", "spec.selector", "; set helm.force to have it deleted and made anew"},
		},
		"what is invalid is not made anew": {
			first: func(_ *world, shop string) []string { return []string{selecting(shop, "x")} },
			objects: func(_ *world, shop string) []string {
				return []string{strings.Replace(selecting(shop, "z"), "replicas: 2", "replicas: -2", 1)}
			},
			options: fleet.HelmOptions{Force: true},
			want:    []string{"Deployment NS/web: ", "spec.replicas"},
			after:   func(w *world, shop string) { w.must("apps/v1/Deployment", shop, "web") },
		},
		"one of several changes: none is made": {
			first: func(_ *world, shop string) []string {
				return []string{configMap(shop, "a", "1"), selecting(shop, "x"), configMap(shop, "b", "1")}
			},
			objects: func(_ *world, shop string) []string {
				return []string{configMap(shop, "a", "2"), selecting(shop, "z"), configMap(shop, "b", "2"), configMap(shop, "c", "2")}
			},
			want: []string{"Deployment NS/web: it cannot be changed in place"},
			after: func(w *world, shop string) {
				w.untilValue(shop, "a", "1")
				w.untilValue(shop, "b", "1")
				w.absent("v1/ConfigMap", shop, "c")
			},
		},
		"a quota": {
			first: func(_ *world, shop string) []string { return []string{configMap(shop, "a", "1")} },
			objects: func(w *world, shop string) []string {
				w.quota(shop)
				return []string{configMap(shop, "a", "1"), configMap(shop, "b", "1")}
			},
			want: []string{"ConfigMap NS/b: ", "exceeded quota: small"},
		},
		"a namespace that is being deleted": {
			objects: func(w *world, shop string) []string {
				w.apply(fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", shop))
				if err := server.client.Delete(w.ctx, w.must("v1/Namespace", "", shop)); err != nil {
					w.t.Fatal(err)
				}
				return []string{configMap(shop, "a", "1")}
			},
			want: []string{"ConfigMap NS/a: the namespace NS is being deleted"},
		},
		"a policy": {
			objects: func(w *world, shop string) []string {
				w.policy(shop)
				return []string{configMap(shop, "bad", "1")}
			},
			want: []string{"ConfigMap NS/bad: ", "ValidatingAdmissionPolicy '", "denied request: nothing bad here"},
		},
		"a webhook": {
			objects: func(w *world, shop string) []string {
				w.webhook(shop, w.denying())
				return []string{configMap(shop, "a", "1")}
			},
			want: []string{"ConfigMap NS/a: ", `admission webhook "hook.NS.example.org" denied the request: not on my watch`},
		},
		"a webhook that does not answer": {
			objects: func(w *world, shop string) []string {
				w.webhook(shop, httptest.NewUnstartedServer(nil))
				return []string{configMap(shop, "a", "1")}
			},
			want: []string{"ConfigMap NS/a: ", `failed calling webhook "hook.NS.example.org"`},
		},
		"a key that a list has twice": {
			objects: func(_ *world, shop string) []string {
				return []string{strings.Replace(deployment(shop, "web"), `image: "app:1"`, `image: "app:1", env: [{name: A, value: "1"}, {name: A, value: "2"}]`, 1)}
			},
			want: []string{"Deployment NS/web: ", `.spec.template.spec.containers[name="app"].env: duplicate entries for key [name="A"]`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			shop := w.ns("shop")
			w.start()
			if test.first != nil {
				w.deploy("web", test.first(w, shop), helm(test.options))
				w.until("web", applied)
			}
			w.deploy("web", test.objects(w, shop), helm(test.options))
			bd := w.until("web", in(fleet.ErrApplied))
			for _, want := range test.want {
				if want = strings.ReplaceAll(want, "NS", shop); !strings.Contains(deployedMessage(bd), want) {
					t.Errorf("message %q does not say %q", deployedMessage(bd), want)
				}
			}
			if test.after != nil {
				test.after(w, shop)
			}
		})
	}
}

// quota allows no more ConfigMaps in a namespace, from now on.
func (w *world) quota(shop string) {
	w.t.Helper()
	w.apply(quota(shop, 1))
	w.enforced(shop, 1)
}

func quota(shop string, n int) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ResourceQuota\nmetadata: {namespace: %s, name: small}\nspec: {hard: {count/configmaps: %d}}\n", shop, n)
}

// quotaStatus plays the controller of quotas, which has counted one ConfigMap.
func (w *world) quotaStatus(shop string, n int) {
	w.t.Helper()
	used := fmt.Sprintf(`{"status":{"hard":{"count/configmaps":"%d"},"used":{"count/configmaps":"1"}}}`, n)
	err := server.client.Status().Patch(w.ctx, w.must("v1/ResourceQuota", shop, "small"), client.RawPatch("application/merge-patch+json", []byte(used)))
	if err != nil {
		w.t.Fatal(err)
	}
}

// enforced waits until a quota of n ConfigMaps, all in use, acts.
func (w *world) enforced(shop string, n int) {
	w.t.Helper()
	w.quotaStatus(shop, n)
	w.eventually(func() error {
		if server.client.Create(w.ctx, w.parsed(configMap(shop, "try", "1")), client.DryRunAll) == nil {
			return fmt.Errorf("the quota does not act yet")
		}
		return nil
	})
}

// policy refuses ConfigMaps of a namespace that are called bad, from now on.
func (w *world) policy(shop string) {
	w.t.Helper()
	w.apply(fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", shop))
	for _, object := range policies(shop, "bad") {
		w.apply(object)
	}
	w.denied(shop)
}

// policies refuse ConfigMaps of a namespace whose names begin so.
func policies(shop, prefix string) []string {
	return []string{
		fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE]}]
  validations: [{expression: "!object.metadata.name.startsWith('%[2]s')", message: nothing %[2]s here}]
`, shop, prefix),
		fmt.Sprintf("apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: %[1]s}\nspec: {policyName: %[1]s, validationActions: [Deny]}\n", shop),
	}
}

// denied waits until bad ConfigMaps are refused.
func (w *world) denied(shop string) {
	w.t.Helper()
	n := 0
	w.eventually(func() error {
		n++
		obj := w.parsed(configMap(shop, fmt.Sprintf("bad-%d", n), "1"))
		if server.client.Create(w.ctx, obj) == nil {
			return fmt.Errorf("the policy does not act yet")
		}
		return nil
	})
}

// denying is a webhook that denies everything.
func (w *world) denying() *httptest.Server {
	s := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		review := map[string]any{}
		_ = yaml.Unmarshal(body, &review)
		request, _ := review["request"].(map[string]any)
		fmt.Fprintf(rw, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":false,"status":{"message":"not on my watch"}}}`, request["uid"])
	}))
	w.t.Cleanup(s.Close)
	return s
}

// webhook makes a server decide on the ConfigMaps of a namespace.
func (w *world) webhook(shop string, s *httptest.Server) {
	w.t.Helper()
	w.apply(fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", shop))
	url, authority := "https://127.0.0.1:1", ""
	if s.TLS != nil {
		url, authority = s.URL, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	}
	config := w.parsed(fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: hook.%[1]s.example.org
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE]}]
  clientConfig: {url: %[2]q}
  sideEffects: None
  admissionReviewVersions: [v1]
  failurePolicy: Fail
`, shop, url))
	webhook := config.Object["webhooks"].([]any)[0].(map[string]any)
	if authority != "" {
		webhook["clientConfig"].(map[string]any)["caBundle"] = []byte(authority)
	}
	raw, err := yaml.Marshal(config.Object)
	if err != nil {
		w.t.Fatal(err)
	}
	w.apply(string(raw))
	w.t.Cleanup(func() { _ = server.client.Delete(w.ctx, config) })
	n := 0
	w.eventually(func() error {
		n++
		if server.client.Create(w.ctx, w.parsed(configMap(shop, fmt.Sprintf("try-%d", n), "1"))) == nil {
			return fmt.Errorf("the webhook does not act yet")
		}
		return nil
	})
}

// TestRefusedIsTriedAgainAtLittleCost counts what each attempt asks for.
func TestRefusedIsTriedAgainAtLittleCost(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	objects := func(value, app string) []string {
		out := []string{configMap(shop, "changed", value), selecting(shop, app)}
		for i := range 10 {
			out = append(out, configMap(shop, fmt.Sprint("same-", i), "1"))
		}
		return out
	}
	w.deploy("web", objects("1", "x"))
	w.start()
	w.until("web", applied)
	w.deploy("web", objects("2", "z"))
	w.until("web", in(fleet.ErrApplied))
	w.spoke.Reset()
	w.hub.Reset()
	tried := func(r apireq.Request) bool { return r.Verb == apireq.Patch && r.Resource == "deployments" }
	w.eventually(func() error {
		if n := len(w.spoke.Seen(tried)); n < 2 {
			return fmt.Errorf("tried %d times", n)
		}
		return nil
	})
	w.stop()
	attempts := len(w.spoke.Seen(tried))
	concerned := func(r apireq.Request) bool { return r.Namespace == shop && r.Verb != apireq.Watch }
	// Each changed object, and whether the refused one would do as a new one.
	if seen := w.spoke.Seen(concerned); len(seen) > 3*attempts+2 {
		t.Errorf("%d attempts made %d requests: %v", attempts, len(seen), seen)
	}
	if seen := w.spoke.Seen(func(r apireq.Request) bool { return concerned(r) && r.Writes() }); len(seen) > 0 {
		t.Errorf("the attempts wrote: %v", seen)
	}
	if seen := w.hub.Seen(func(r apireq.Request) bool { return writes(r) && !reported(r) || r.Resource == "configmaps" }); len(seen) > 0 {
		t.Errorf("the attempts asked the hub: %v", seen)
	}
}
