package agent_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/kube"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-sh/flotilla/internal/lab/labtest"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func taking(bd *fleet.BundleDeployment) {
	bd.Spec.Options.Helm = &fleet.HelmOptions{TakeOwnership: true}
}

// installed are the objects that a former owner has put on the cluster: more
// than Git has.
func installed(namespace string) []string {
	return []string{
		fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {namespace: %s, name: cm, labels: {old: label}, annotations: {old: annotation}}
data: {key: old, gone: soon}
`, namespace),
		strings.Replace(deployment(namespace, "web"), "spec:\n", "spec:\n  minReadySeconds: 7\n", 1),
		fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {namespace: %s, name: web}
spec: {selector: {app: x, old: selector}, ports: [{name: http, port: 80}, {name: old, port: 81}]}
`, namespace),
	}
}

// wantedNow are the same objects as Git has them.
func wantedNow(namespace string) []string {
	return []string{
		configMap(namespace, "cm", "new"),
		deployment(namespace, "web"),
		fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {namespace: %s, name: web}
spec: {selector: {app: x}, ports: [{name: http, port: 80}]}
`, namespace),
	}
}

// installers put objects on a cluster as the named program does.
func installers() map[string]func(w *world, namespace string, objects []string) {
	return map[string]func(w *world, namespace string, objects []string){
		"kubectl apply":               func(w *world, _ string, objects []string) { w.kubectl(objects, "apply") },
		"kubectl apply --server-side": func(w *world, _ string, objects []string) { w.kubectl(objects, "apply", "--server-side") },
		"kubectl create":              func(w *world, _ string, objects []string) { w.kubectl(objects, "create") },
		"Helm 3's client":             (*world).helm,
		"helm install":                (*world).helmInstall,
		"Rancher Fleet's agent":       (*world).rancherFleet,
	}
}

// kubectl runs the real kubectl on objects.
func (w *world) kubectl(objects []string, args ...string) {
	w.t.Helper()
	program := labtest.Program(w.t, "kubectl")
	cmd := exec.Command(program, append(args, "--kubeconfig", w.kubeconfig(w.t), "-f", "-")...)
	cmd.Stdin = strings.NewReader(strings.Join(objects, "---\n"))
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
}

// helm installs objects with Helm's own client and the marks of a release.
func (w *world) helm(namespace string, objects []string) {
	w.t.Helper()
	settings := cli.New()
	settings.KubeConfig = w.kubeconfig(w.t)
	helm := kube.New(settings.RESTClientGetter())
	text := strings.Join(w.marked(objects, map[string]string{"app.kubernetes.io/managed-by": "Helm"}, map[string]string{
		"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": namespace,
	}), "---\n")
	resources, err := helm.Build(strings.NewReader(text), true)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := helm.Create(resources); err != nil {
		w.t.Fatal(err)
	}
}

// helmInstall installs objects as the release web with the real helm.
func (w *world) helmInstall(namespace string, objects []string) {
	w.t.Helper()
	program := filepath.Join(labtest.Bin(), "tools", "helm")
	if _, err := os.Stat(program); err != nil {
		w.t.Skipf("needs the program: run `make tools` first (%v)", err)
	}
	dir := w.t.TempDir()
	for name, text := range map[string]string{
		"Chart.yaml":         "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"templates/all.yaml": strings.Join(objects, "---\n"),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "install", "web", dir, "--namespace", namespace, "--kubeconfig", w.kubeconfig(w.t))
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("helm install: %v\n%s", err, out)
	}
}

// rancherFleet makes objects with the marks and the field manager of Rancher
// Fleet's agent, which installs by Helm.
func (w *world) rancherFleet(namespace string, objects []string) {
	w.t.Helper()
	for _, text := range w.marked(objects, map[string]string{
		"objectset.rio.cattle.io/hash": "0123456789", "app.kubernetes.io/managed-by": "Helm",
	}, map[string]string{
		"objectset.rio.cattle.io/id": "default-web", "meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": namespace,
	}) {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), obj); err != nil {
			w.t.Fatal(err)
		}
		if err := server.client.Create(w.ctx, obj, client.FieldOwner("fleetagent")); err != nil {
			w.t.Fatal(err)
		}
	}
}

// marked adds labels and annotations to objects.
func (w *world) marked(objects []string, labels, annotations map[string]string) []string {
	w.t.Helper()
	var out []string
	for _, text := range objects {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), obj); err != nil {
			w.t.Fatal(err)
		}
		l, a := maps.Clone(labels), maps.Clone(annotations)
		maps.Copy(l, obj.GetLabels())
		maps.Copy(a, obj.GetAnnotations())
		obj.SetLabels(l)
		obj.SetAnnotations(a)
		raw, err := yaml.Marshal(obj)
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, string(raw))
	}
	return out
}

// TestAdoption takes over what others have installed: the objects stay the same
// ones, and nothing is left that Git does not have.
func TestAdoption(t *testing.T) {
	kube.ManagedFieldsManager = "helm" // as the program calls itself
	for name, install := range installers() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			shop := w.ns("shop")
			w.apply(fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", shop))
			install(w, shop, installed(shop))
			kinds := []string{"v1/ConfigMap", "apps/v1/Deployment", "v1/Service"}
			names := []string{"cm", "web", "web"}
			var before []*unstructured.Unstructured
			for i, kind := range kinds {
				before = append(before, w.must(kind, shop, names[i]))
			}
			w.deploy("web", wantedNow(shop))
			w.start()
			if message := deployedMessage(w.until("web", in(fleet.ErrApplied))); !strings.Contains(message, "helm.takeOwnership") {
				t.Errorf("message: %s", message)
			}
			w.deploy("web", wantedNow(shop), taking)
			w.until("web", applied)
			for i, kind := range kinds {
				w.adoptedWhole(before[i], w.must(kind, shop, names[i]))
			}
			// A field that leaves Git later leaves the object as well.
			w.deploy("web", append(wantedNow(shop)[1:], strings.ReplaceAll(configMap(shop, "cm", "x"), "key:", "other:")), taking)
			w.until("web", applied)
			if data := w.must("v1/ConfigMap", shop, "cm").Object["data"].(map[string]any); len(data) != 1 || data["other"] != "x" {
				t.Errorf("data: %v", data)
			}
		})
	}
}

// adoptedWhole fails where the object was made anew, or bears anything of its
// former owner.
func (w *world) adoptedWhole(before, now *unstructured.Unstructured) {
	w.t.Helper()
	if now.GetUID() != before.GetUID() {
		w.t.Errorf("%s %s was made anew", now.GetKind(), now.GetName())
	}
	for key := range now.GetAnnotations() {
		if key != fleet.BundleAnnotation && key != "deployment.kubernetes.io/revision" {
			w.t.Errorf("%s %s still has the annotation %s", now.GetKind(), now.GetName(), key)
		}
	}
	for key := range now.GetLabels() {
		if key != fleet.DeploymentLabel {
			w.t.Errorf("%s %s still has the label %s", now.GetKind(), now.GetName(), key)
		}
	}
	switch now.GetKind() {
	case "ConfigMap":
		if data := now.Object["data"].(map[string]any); len(data) != 1 || data["key"] != "new" {
			w.t.Errorf("data: %v", data)
		}
	case "Deployment":
		if seconds, found, _ := unstructured.NestedInt64(now.Object, "spec", "minReadySeconds"); found && seconds != 0 {
			w.t.Errorf("minReadySeconds: %d", seconds)
		}
	case "Service":
		selector, _, _ := unstructured.NestedStringMap(now.Object, "spec", "selector")
		ports, _, _ := unstructured.NestedSlice(now.Object, "spec", "ports")
		if len(selector) != 1 || len(ports) != 1 {
			w.t.Errorf("spec: %v %v", selector, ports)
		}
		if ip, _, _ := unstructured.NestedString(now.Object, "spec", "clusterIP"); ip == "" || ip != before.Object["spec"].(map[string]any)["clusterIP"] {
			w.t.Errorf("clusterIP: %s", ip)
		}
	}
}

// TestAdoptionLeavesControllersWhatTheyHave adopts a Deployment that an
// autoscaler has scaled and a controller has annotated.
func TestAdoptionLeavesControllersWhatTheyHave(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.apply(fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", shop))
	w.rancherFleet(shop, installed(shop)[1:2])
	live := w.must("apps/v1/Deployment", shop, "web")
	w.edit(live, "kube-controller-manager", `{"metadata":{"annotations":{"deployment.kubernetes.io/revision":"3"}}}`)
	w.scale(live, 5, "hpa")
	w.deploy("web", []string{deployment(shop, "web")}, taking)
	w.start()
	w.until("web", applied)
	now := w.must("apps/v1/Deployment", shop, "web")
	if now.GetAnnotations()["deployment.kubernetes.io/revision"] != "3" {
		t.Errorf("annotations: %v", now.GetAnnotations())
	}
	w.adoptedWhole(live, now)
}

// TestRestoredObjectIsAdoptedAgain applies onto an object that a backup tool has
// made anew: the marks are ours, the fields are the tool's.
func TestRestoredObjectIsAdoptedAgain(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "cm", "1")})
	w.start()
	w.until("web", ready)
	w.stop()
	old := w.must("v1/ConfigMap", shop, "cm")
	if err := server.client.Delete(w.ctx, old); err != nil {
		t.Fatal(err)
	}
	restored := old.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp"} {
		unstructured.RemoveNestedField(restored.Object, "metadata", field)
	}
	if err := server.client.Create(w.ctx, restored, client.FieldOwner("velero-server")); err != nil {
		t.Fatal(err)
	}
	w.deploy("web", []string{strings.ReplaceAll(configMap(shop, "cm", "2"), "key:", "other:")})
	w.start()
	w.until("web", ready)
	if data := w.must("v1/ConfigMap", shop, "cm").Object["data"].(map[string]any); len(data) != 1 || data["other"] != "2" {
		t.Errorf("data: %v", data)
	}
}

// TestTwoHubsWithTheSameBundle refuses an object of a bundle that has the same
// name on another hub, and goes on with those from before hubs had identities.
func TestTwoHubsWithTheSameBundle(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.introduce("hub-a")
	w.deploy("web", []string{configMap(shop, "cm", "1"), configMap(shop, "older", "1")})
	w.start()
	w.until("web", ready)
	if got := w.must("v1/ConfigMap", shop, "cm").GetAnnotations()[fleet.HubAnnotation]; got != "hub-a" {
		t.Errorf("hub: %q", got)
	}
	w.stop()
	w.edit(w.must("v1/ConfigMap", shop, "cm"), "flotilla-"+w.namespace+"/web", `{"metadata":{"annotations":{"flotilla.sh/hub":"hub-b"}}}`)
	w.edit(w.must("v1/ConfigMap", shop, "older"), "flotilla-"+w.namespace+"/web", `{"metadata":{"annotations":{"flotilla.sh/hub":null}}}`)
	w.loseState()
	w.start()
	w.deploy("web", []string{configMap(shop, "cm", "2"), configMap(shop, "older", "2")}, taking)
	bd := w.until("web", in(fleet.ErrApplied))
	if message := deployedMessage(bd); !strings.Contains(message, "ConfigMap "+shop+"/cm: it belongs to bundle "+w.namespace+"/web of another hub (hub-b)") {
		t.Errorf("message: %s", message)
	}
	w.untilValue(shop, "older", "2")
	w.untilValue(shop, "cm", "1")
	w.deploy("web", nil, func(bd *fleet.BundleDeployment) { bd.Spec.Removal = &fleet.Removal{} })
	w.until("web", gone)
	w.untilValue(shop, "cm", "1")
}

// introduce says on the agent's Lease who the hub is.
func (w *world) introduce(hub string) {
	w.t.Helper()
	w.edit(w.must("coordination.k8s.io/v1/Lease", w.namespace, fleet.AgentName), "hub",
		fmt.Sprintf(`{"metadata":{"annotations":{"flotilla.sh/hub":%q}}}`, hub))
}

// loseState deletes all that the agent has stored.
func (w *world) loseState() {
	w.t.Helper()
	if err := server.client.DeleteAllOf(w.ctx, &corev1.Secret{}, client.InNamespace(w.state)); err != nil {
		w.t.Fatal(err)
	}
}

// scale sets the number of replicas as autoscalers and kubectl do.
func (w *world) scale(live *unstructured.Unstructured, replicas int32, program string) {
	w.t.Helper()
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	if err := server.client.SubResource("scale").Update(w.ctx, live, client.WithSubResourceBody(scale), client.FieldOwner(program)); err != nil {
		w.t.Fatal(err)
	}
}
