package e2e

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/names"
	"github.com/flotilla-sh/flotilla/internal/render/rendertest"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// realChart is a chart of a public project.
type realChart struct {
	// objects is how many it makes, without those that are hooks.
	objects int
	// source is true where only the cluster can render it.
	source bool
	// first are the values that it cannot do without.
	first string
	// values change an object of the chart when it is upgraded.
	values string
}

// Each chart goes to one cluster, which has one at a time, is there with every object and Ready, is
// upgraded with a change, goes back to the digest before, and leaves nothing
// behind but what is held.
func TestRealCharts(t *testing.T) {
	t.Parallel()
	charts := map[string]realChart{
		"podinfo":               {objects: 2, values: "replicaCount: 2"},
		"ingress-nginx":         {objects: 11, values: "controller: {replicaCount: 2}"},
		"gatekeeper":            {objects: 30, values: "replicas: 2"},
		"base":                  {objects: 17},
		"submariner-k8s-broker": {objects: 9},
		"submariner-operator":   {objects: 36, first: operatorValues("1.10"), values: operatorValues("1.11")},
		"kyverno":               {objects: 58, values: "admissionController: {replicas: 3}"},
		// Its password is random.
		"kube-prometheus-stack": {objects: 125, source: true, values: "grafana: {replicas: 2}"},
	}
	// The largest go first, so that no cluster is left with one at the end.
	largest := func(a, b string) int {
		return cmp.Or(charts[b].objects-charts[a].objects, strings.Compare(a, b))
	}
	queue := make(chan string, len(charts))
	for _, name := range slices.SortedFunc(maps.Keys(charts), largest) {
		queue <- name
	}
	close(queue)
	var clusters sync.WaitGroup
	for _, cluster := range all {
		clusters.Go(func() {
			for name := range queue {
				t.Run(name, func(t *testing.T) { charts[name].run(t, name, cluster) })
			}
		})
	}
	clusters.Wait()
}

// operatorValues are what submariner-operator cannot do without.
func operatorValues(tag string) string {
	return "submariner: {clusterId: c1}\n    operator: {image: {repository: example.com/operator, tag: '" + tag + "'}}"
}

func (c realChart) run(t *testing.T, name, cluster string) {
	w := shared
	r := w.repository(t, "chart-"+name)
	commit := r.commit(c.directory(t, name))
	t.Cleanup(func() { w.clean(t, cluster, "chart-"+name) })
	repo := w.declare(t, "chart-"+name, r, only(cluster))
	key := cluster + "/chart-" + name + "-app"
	eventually(t, name+" is applied", func() error { return c.applied(w.deployments(t, repo.Name)[key]) })
	w.rolledOut(t, repo, commit)
	if d := w.deployments(t, repo.Name)[key]; d.Spec.Content.Source != c.source {
		t.Errorf("rendered on the cluster: %v, want %v", d.Spec.Content.Source, c.source)
	}
	if n := len(w.labelled(t, cluster, "chart-"+name)); n < c.objects {
		t.Errorf("%d objects carry the label of a deployment, want %d", n, c.objects)
	}
	before := w.deployments(t, repo.Name)[key].Spec
	w.rolledOut(t, repo, r.commit(c.upgrade(name)))
	upgraded := w.deployments(t, repo.Name)[key]
	if upgraded.Spec.DeploymentID == before.DeploymentID || upgraded.Status.InventoryCount <= c.objects {
		t.Errorf("upgraded to %s with %d objects, from %s", upgraded.Spec.DeploymentID, upgraded.Status.InventoryCount, before.DeploymentID)
	}
	r.git("revert", "--no-edit", "HEAD")
	w.rolledOut(t, repo, r.push())
	if back := w.deployments(t, repo.Name)[key]; back.Spec.DeploymentID != before.DeploymentID || back.Status.InventoryCount != c.objects {
		t.Errorf("went back to %s with %d objects, want %s with %d", back.Spec.DeploymentID, back.Status.InventoryCount, before.DeploymentID, c.objects)
	}
}

// directory is the unpacked chart with its fleet.yaml.
func (c realChart) directory(t *testing.T, name string) files {
	t.Helper()
	out := files{"app/fleet.yaml": fleetYAML(name, c.first)}
	for _, file := range rendertest.Chart(t, name) {
		if len(file.Data) > 0 {
			out[path.Join("app", file.Path)] = string(file.Data)
		}
	}
	return out
}

func fleetYAML(name, values string) string {
	text := "defaultNamespace: chart-" + name + "\nhelm:\n  releaseName: " + name + "\n"
	if values != "" {
		text += "  values:\n    " + values + "\n"
	}
	return text
}

// upgrade changes what the chart has, and adds an object to it.
func (c realChart) upgrade(name string) files {
	out := files{"app/templates/extra.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\ndata: {release: {{ .Release.Name }}}\n"}
	if c.values != "" {
		out["app/fleet.yaml"] = fleetYAML(name, c.values)
	}
	return out
}

func (c realChart) applied(d fleet.BundleDeployment) error {
	deployed := fleet.FindCondition(d.Status.Conditions, fleet.ConditionDeployed)
	if deployed == nil || deployed.Status != metav1.ConditionTrue || d.Status.AppliedDeploymentID != d.Spec.DeploymentID {
		return fmt.Errorf("deployed is %+v", deployed)
	}
	if d.Status.InventoryCount != c.objects || d.Status.ResourceCounts.DesiredReady != c.objects {
		return fmt.Errorf("%d objects in the inventory, counts %+v, want %d", d.Status.InventoryCount, d.Status.ResourceCounts, c.objects)
	}
	return nil
}

// clean runs after the GitRepo is gone: it checks that nothing of it is left
// on the spoke but what is held, and removes that.
func (w *world) clean(t *testing.T, spoke, namespace string) {
	t.Helper()
	for _, obj := range w.labelled(t, spoke, namespace) {
		t.Errorf("%s %s/%s was left behind", obj.Kind, obj.Namespace, obj.Name)
	}
	crds := w.definitions(t, spoke)
	for i := range crds {
		if crds[i].GetAnnotations()["flotilla.sh/held"] == "" {
			t.Errorf("the definition %s was left behind and is not marked as held", crds[i].GetName())
		}
		if err := w.spokes[spoke].Delete(context.Background(), &crds[i]); err != nil {
			t.Error(err)
		}
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := client.IgnoreNotFound(w.spokes[spoke].Delete(context.Background(), ns)); err != nil {
		t.Error(err)
	}
}

// definitions are the CustomResourceDefinitions of a spoke.
func (w *world) definitions(t *testing.T, spoke string) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
	if err := w.spokes[spoke].List(context.Background(), list); err != nil {
		t.Error(err)
	}
	return list.Items
}

// labelled lists every object of a spoke that carries the label of the one
// deployment of a repository.
func (w *world) labelled(t *testing.T, spoke, repo string) []metav1.PartialObjectMetadata {
	t.Helper()
	of := client.MatchingLabels{fleet.DeploymentLabel: names.DeploymentLabel(registration, repo+"-app")}
	var out []metav1.PartialObjectMetadata
	for _, gvk := range w.kinds(t, spoke) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		err := w.spokes[spoke].List(context.Background(), list, of)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err) {
			t.Errorf("list %s: %v", gvk, err)
		}
		for _, item := range list.Items {
			item.SetGroupVersionKind(gvk)
			out = append(out, item)
		}
	}
	return out
}

// kinds are the kinds of a spoke that can be listed.
func (w *world) kinds(t *testing.T, spoke string) []schema.GroupVersionKind {
	t.Helper()
	var kubeconfig string
	for _, s := range w.status.Spokes {
		if s.Name == spoke {
			kubeconfig = s.Kubeconfig
		}
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	lists, err := discovery.NewDiscoveryClientForConfigOrDie(cfg).ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	var out []schema.GroupVersionKind
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			out = append(out, gv.WithKind(resource.Kind))
		}
	}
	return out
}
