package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func marked(bd *fleet.BundleDeployment) {
	bd.Spec.Removal = &fleet.Removal{Reason: "the bundle is gone"}
}

// removing is satisfied once the removal waits and says so in these words.
func removing(words ...string) func(*fleet.BundleDeployment) error {
	return func(bd *fleet.BundleDeployment) error {
		for _, word := range words {
			if s := bd.Status.RemovalState; s == nil || s.Done || !strings.Contains(s.Message, word) {
				return fmt.Errorf("removal: %+v, want %q", s, word)
			}
		}
		return nil
	}
}

func TestRemovalGoesBackwardsAndWaits(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "config", "1"), deployment(shop, "web")})
	w.start()
	w.until("web", applied)
	w.edit(w.must("apps/v1/Deployment", shop, "web"), "someone", `{"metadata":{"finalizers":["example.org/drain"]}}`)
	w.deploy("web", nil, marked)
	w.until("web", removing("Deployment "+shop+"/web: it is being deleted and waits for its finalizers example.org/drain since 20"))
	w.must("v1/ConfigMap", shop, "config")
	w.edit(w.must("apps/v1/Deployment", shop, "web"), "someone", `{"metadata":{"finalizers":null}}`)
	w.until("web", gone)
	w.absent("v1/ConfigMap", shop, "config")
}

func TestPruneWaitsForWhatHangs(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "config", "1"), deployment(shop, "web"), configMap(shop, "stays", "1")})
	w.start()
	w.until("web", applied)
	w.edit(w.must("apps/v1/Deployment", shop, "web"), "someone", `{"metadata":{"finalizers":["example.org/drain"]}}`)
	w.deploy("web", []string{configMap(shop, "stays", "1")})
	w.until("web", func(bd *fleet.BundleDeployment) error {
		if message := deployedMessage(bd); !strings.Contains(message, "Deployment "+shop+"/web: it is being deleted and waits for its finalizers example.org/drain") {
			return fmt.Errorf("message: %s", message)
		}
		return nil
	})
	w.must("v1/ConfigMap", shop, "config")
	w.stop()
	w.edit(w.must("apps/v1/Deployment", shop, "web"), "someone", `{"metadata":{"finalizers":null}}`)
	w.start()
	w.until("web", ready)
	w.absent("v1/ConfigMap", shop, "config")
}

func TestWhatOthersDependOnGoesLast(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("db", []string{configMap(shop, "db", "1")})
	labelled := func(bd *fleet.BundleDeployment) { bd.Labels["app"] = bd.Name }
	w.deploy("web", []string{configMap(shop, "web", "1")}, labelled, func(bd *fleet.BundleDeployment) {
		bd.Spec.DependsOn = []fleet.BundleRef{{Name: "db"}}
	})
	w.deploy("top", []string{configMap(shop, "top", "1")}, func(bd *fleet.BundleDeployment) {
		bd.Spec.DependsOn = []fleet.BundleRef{{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	})
	w.start()
	w.until("top", ready)
	w.edit(w.must("v1/ConfigMap", shop, "top"), "someone", `{"metadata":{"finalizers":["example.org/hangs"]}}`)
	w.stop()
	for _, name := range []string{"db", "web", "top"} {
		w.deploy(name, nil, marked, labelled)
	}
	w.start()
	w.until("top", removing("example.org/hangs"))
	w.until("web", removing("bundle(s) that depend on it are removed first: top"))
	w.until("db", removing("bundle(s) that depend on it are removed first: web"))
	w.must("v1/ConfigMap", shop, "db")
	w.edit(w.must("v1/ConfigMap", shop, "top"), "someone", `{"metadata":{"finalizers":null}}`)
	for _, name := range []string{"top", "web", "db"} {
		w.until(name, gone)
	}
	w.absent("v1/ConfigMap", shop, "db")
}

func TestDeleteNamespace(t *testing.T) {
	claim := func(namespace string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {namespace: %s, name: data}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n", namespace)
	}
	namespace := func(name string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", name)
	}
	for name, test := range map[string]struct {
		objects func(shop string) []string
		before  func(w *world, shop string)
		keep    bool
		stays   bool
	}{
		"made for the bundle":            {},
		"made for the bundle, not asked": {keep: true, stays: true},
		"made for the bundle, with more in it": {before: func(w *world, shop string) {
			w.deploy("web", []string{configMap(shop, "a", "1")}, deletingNamespace)
			w.start()
			w.until("web", ready)
			w.apply(configMap(shop, "by-hand", "1"))
		}},
		"there before, and empty": {before: func(w *world, shop string) { w.apply(namespace(shop)) }},
		"there before, with something in it": {before: func(w *world, shop string) {
			w.apply(namespace(shop))
			w.apply(configMap(shop, "by-hand", "1"))
		}, stays: true},
		"another bundle is in it": {before: func(w *world, shop string) {
			w.deploy("other", []string{configMap(shop, "other", "1")})
			w.start()
			w.until("other", ready)
		}, stays: true},
		"a claim is kept in it": {objects: func(shop string) []string { return []string{claim(shop)} }, stays: true},
		"in the bundle":         {objects: func(shop string) []string { return []string{namespace(shop)} }},
		"in the bundle, there before": {objects: func(shop string) []string { return []string{namespace(shop)} }, before: func(w *world, shop string) {
			w.apply(namespace(shop))
			w.apply(configMap(shop, "by-hand", "1"))
		}, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			shop := w.ns("shop")
			if test.before != nil {
				test.before(w, shop)
			}
			objects := []string{configMap(shop, "a", "1")}
			if test.objects != nil {
				objects = append(objects, test.objects(shop)...)
			}
			w.deploy("web", objects, taking, func(bd *fleet.BundleDeployment) { bd.Spec.Options.DeleteNamespace = !test.keep })
			w.stop()
			w.start()
			w.until("web", applied)
			w.deploy("web", nil, marked)
			if !test.stays {
				w.until("web", removing("Namespace "+shop+": it is being deleted"))
				w.finalizeNamespace(shop)
				w.until("web", gone)
				return
			}
			w.until("web", gone)
			if ns := w.must("v1/Namespace", "", shop); ns.GetDeletionTimestamp() != nil {
				t.Error("the namespace is being deleted")
			}
			w.absent("v1/ConfigMap", shop, "a")
		})
	}
}

// TestNamespaceOfWhatWasKeptEarlier: what an earlier commit, or an earlier step
// of the removal, has left in a namespace keeps it as long as it is there.
func TestNamespaceOfWhatWasKeptEarlier(t *testing.T) {
	kept := func(namespace string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {namespace: %s, name: data, annotations: {helm.sh/resource-policy: keep}}\n", namespace)
	}
	for name, test := range map[string]struct {
		steps func(w *world, shop string)
		gone  bool
	}{
		"by an earlier commit": {steps: func(w *world, shop string) {
			w.deploy("web", []string{configMap(shop, "a", "1"), kept(shop)}, deletingNamespace)
			w.start()
			w.until("web", ready)
			w.deploy("web", []string{configMap(shop, "a", "1")}, deletingNamespace)
			w.until("web", ready)
			w.deploy("web", nil, marked)
		}},
		"by an earlier commit, and deleted since": {gone: true, steps: func(w *world, shop string) {
			w.deploy("web", []string{configMap(shop, "a", "1"), kept(shop)}, deletingNamespace)
			w.start()
			w.until("web", ready)
			w.deploy("web", []string{configMap(shop, "a", "1")}, deletingNamespace)
			w.until("web", ready)
			if err := server.client.Delete(w.ctx, w.must("v1/Secret", shop, "data")); err != nil {
				w.t.Fatal(err)
			}
			w.deploy("web", nil, marked)
		}},
		"by an earlier step of the removal": {steps: func(w *world, shop string) {
			hangs := strings.Replace(configMap(shop, "hangs", "1"), "name: hangs", "name: hangs, finalizers: [example.org/drain]", 1)
			w.deploy("web", []string{hangs, kept(shop)}, deletingNamespace)
			w.start()
			w.until("web", ready)
			w.deploy("web", nil, marked)
			w.until("web", removing("example.org/drain"))
			w.edit(w.must("v1/ConfigMap", shop, "hangs"), "someone", `{"metadata":{"finalizers":null}}`)
		}},
		"by a step that was not stored": {steps: func(w *world, shop string) {
			w.deploy("web", []string{configMap(shop, "a", "1"), kept(shop)}, deletingNamespace)
			w.start()
			w.until("web", ready)
			w.stop()
			w.edit(w.must("v1/Secret", shop, "data"), "flotilla-agent", fmt.Sprintf(
				`{"metadata":{"labels":{%q:null},"annotations":{%q:null,%q:null,"flotilla.sh/held":%q}}}`,
				fleet.DeploymentLabel, fleet.BundleAnnotation, fleet.HubAnnotation, w.namespace+"/web"))
			w.deploy("web", nil, marked)
			w.start()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			shop := w.ns("shop")
			test.steps(w, shop)
			if test.gone {
				w.until("web", removing("Namespace "+shop+": it is being deleted"))
				w.finalizeNamespace(shop)
			}
			bd := w.until("web", gone)
			if test.gone {
				return
			}
			if ns := w.must("v1/Namespace", "", shop); ns.GetDeletionTimestamp() != nil {
				t.Error("the namespace is being deleted")
			}
			if !strings.Contains(bd.Status.RemovalState.Message, "Secret "+shop+"/data") {
				t.Errorf("removal: %+v", bd.Status.RemovalState)
			}
		})
	}
}

func deletingNamespace(bd *fleet.BundleDeployment) { bd.Spec.Options.DeleteNamespace = true }

// finalizeNamespace lets a namespace go, as its controller would.
func (w *world) finalizeNamespace(name string) {
	w.t.Helper()
	clients, err := kubernetes.NewForConfig(server.config)
	if err != nil {
		w.t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := clients.CoreV1().Namespaces().Finalize(context.Background(), ns, metav1.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
}

func TestDeleteCRDResources(t *testing.T) {
	for _, remove := range []bool{false, true} {
		t.Run(fmt.Sprint(remove), func(t *testing.T) {
			w := newWorld(t)
			group := w.namespace + ".example.org"
			w.deploy("kinds", []string{crd(group)}, func(bd *fleet.BundleDeployment) { bd.Spec.Options.DeleteCRDResources = remove })
			w.start()
			w.until("kinds", ready)
			w.deploy("kinds", nil, marked)
			w.eventually(func() error {
				live, err := w.object("apiextensions.k8s.io/v1/CustomResourceDefinition", "", "gadgets."+group)
				if !remove {
					return err
				}
				if apierrors.IsNotFound(err) || err == nil && live.GetDeletionTimestamp() != nil {
					return nil
				}
				return fmt.Errorf("the kind is still there: %v", err)
			})
			bd := w.until("kinds", gone)
			if kept := strings.Contains(bd.Status.RemovalState.Message, "CustomResourceDefinition gadgets."+group); kept == remove {
				t.Errorf("removal: %+v", bd.Status.RemovalState)
			}
		})
	}
}

// TestClusterThatWasOffForWeeks comes back after all that can happen meanwhile,
// and takes off nothing that Git wants.
func TestClusterThatWasOffForWeeks(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	both := []string{configMap(shop, "a", "1"), configMap(shop, "b", "1")}
	names := []string{"dropped", "withdrawn", "remade", "lost"}
	of := func(name string) []string {
		return []string{configMap(shop, name+"-a", "1"), configMap(shop, name+"-b", "1")}
	}
	for _, name := range names {
		w.deploy(name, of(name))
	}
	w.deploy("goes", both)
	w.start()
	uids := map[string]string{}
	for _, name := range names {
		w.until(name, ready)
		for _, suffix := range []string{"-a", "-b"} {
			uids[name+suffix] = string(w.must("v1/ConfigMap", shop, name+suffix).GetUID())
		}
	}
	w.until("goes", ready)
	w.stop()

	w.deploy("dropped", of("dropped")[:1])
	w.deploy("dropped", of("dropped"))
	w.deploy("withdrawn", nil, marked)
	w.deploy("withdrawn", nil, func(bd *fleet.BundleDeployment) { bd.Spec.Removal = nil })
	for _, name := range []string{"remade", "lost"} {
		if err := server.client.Delete(w.ctx, w.status(name)); err != nil {
			t.Fatal(err)
		}
	}
	w.deploy("remade", of("remade"))
	w.deploy("goes", nil, marked)

	w.start()
	w.until("goes", gone)
	for _, name := range names[:3] {
		w.until(name, ready)
	}
	for name, uid := range uids {
		if got := w.must("v1/ConfigMap", shop, name); string(got.GetUID()) != uid || got.GetDeletionTimestamp() != nil {
			t.Errorf("%s was touched", name)
		}
	}
	w.absent("v1/ConfigMap", shop, "a")
}
