package hubtest_test

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/names"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// left puts the finalizer on an object that Rancher Fleet has left there.
func (w *world) left(obj client.Object, kind string) {
	w.Helper()
	if !w.exists(obj) {
		w.Fatalf("there is no %T %s", obj, client.ObjectKeyFromObject(obj))
	}
	base := obj.DeepCopyObject().(client.Object)
	obj.SetFinalizers(append(obj.GetFinalizers(), "fleet.cattle.io/"+kind+"-finalizer"))
	w.must(w.client.Patch(w.ctx, obj, client.MergeFrom(base)))
}

// removed reports, as an agent does, that a deployment is off its cluster, and
// waits until the hub has let it go.
func (w *whole) removed(d *fleet.BundleDeployment) {
	w.Helper()
	w.eventually("mark for removal", func() bool { return w.exists(d) && d.Spec.Removal != nil })
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"observedGeneration": d.Generation, "removalState": map[string]any{"done": true},
	}})
	w.must(err)
	w.must(w.client.Status().Patch(w.ctx, d, client.RawPatch("application/merge-patch+json", patch)))
	uid := d.UID
	w.eventually("let the deployment go", func() bool { return !w.exists(d) || d.UID != uid })
}

func (w *whole) gone(objs ...client.Object) {
	w.Helper()
	for _, obj := range objs {
		uid := obj.GetUID()
		w.eventually("let "+obj.GetName()+" go", func() bool { return !w.exists(obj) || obj.GetUID() != uid })
	}
}

// agentOfRancherFleet makes the Bundle with which Rancher Fleet keeps its own
// agent on a cluster.
func (w *whole) agentOfRancherFleet(cluster string) *fleet.Bundle {
	w.Helper()
	b := &fleet.Bundle{ObjectMeta: w.meta("fleet-agent-" + cluster)}
	b.Finalizers = []string{"fleet.cattle.io/bundle-finalizer"}
	b.Spec.Resources = configMap("agent")
	b.Spec.Helm = &fleet.HelmOptions{TakeOwnership: true}
	b.Spec.Targets = []fleet.BundleTarget{{ClusterName: cluster, ClusterSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: fleet.NonManagedAgentLabel, Operator: metav1.LabelSelectorOpDoesNotExist}},
	}}}
	w.create(b)
	return b
}

// TestWhatRancherFleetMadeCanGo moves a hub over: the objects have finalizers
// that nobody but Rancher Fleet's controller, which runs no more, would take off.
func TestWhatRancherFleetMadeCanGo(t *testing.T) {
	w := newWhole(t)
	w.start()
	spaces := w.clusters(1)
	cluster := &fleet.Cluster{ObjectMeta: w.meta("c00")}
	agent := w.agentOfRancherFleet(cluster.Name)
	repo := &fleet.GitRepo{ObjectMeta: w.meta("repo")}
	bundle := &fleet.Bundle{ObjectMeta: w.meta(w.repo(repo.Name))}
	d := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: spaces[0], Name: bundle.Name}}
	w.agents(spaces, bundle.Name)
	w.left(cluster, "cluster")
	w.left(repo, "gitrepo")
	w.left(bundle, "bundle")
	w.left(d, "bundle-deployment")

	retarget := func(env string) {
		patch := `{"spec":{"targets":[{"clusterSelector":{"matchLabels":{"env":"` + env + `"}}}]}}`
		w.must(w.client.Patch(w.ctx, repo, client.RawPatch("application/merge-patch+json", []byte(patch))))
	}
	retarget("none")
	w.removed(d)
	retarget("test")
	w.agents(spaces, bundle.Name)
	w.left(d, "bundle-deployment")

	w.must(w.client.Delete(w.ctx, repo))
	w.removed(d)
	w.gone(bundle, repo)
	w.eventually("say why the agent is not deployed", func() bool {
		w.exists(agent)
		rendered := fleet.FindCondition(agent.Status.Conditions, fleet.ConditionRendered)
		return rendered != nil && rendered.Status == metav1.ConditionFalse && strings.Contains(rendered.Message, "agent of Rancher Fleet")
	})
	if w.exists(&fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: spaces[0], Name: agent.Name}}) {
		t.Error("the agent of Rancher Fleet is deployed")
	}
	w.must(w.client.Delete(w.ctx, agent))
	w.gone(agent)
	w.must(w.client.Delete(w.ctx, cluster))
	w.gone(cluster)
}

// TestWhatRancherFleetWasDeleting is there when the hub begins: it has never had
// our finalizer, and cannot get it any more.
func TestWhatRancherFleetWasDeleting(t *testing.T) {
	w := newWhole(t)
	named := w.meta("old")
	space := names.ClusterNamespace(w.namespace, named.Name)
	repo, op := &fleet.GitRepo{ObjectMeta: named}, &fleet.HelmOp{ObjectMeta: named}
	repo.Spec.Repo = "https://git.example/old"
	op.Spec.Helm = &fleet.HelmOptions{Chart: "old", Repo: "https://charts.example"}
	cluster, bundle := &fleet.Cluster{ObjectMeta: named}, &fleet.Bundle{ObjectMeta: named}
	schedule := &fleet.Schedule{ObjectMeta: named, Spec: fleet.ScheduleSpec{Schedule: "0 0 22 * * *", Duration: &metav1.Duration{Duration: 1}}}
	kinds := map[string]client.Object{"gitrepo": repo, "helmop": op, "cluster": cluster, "bundle": bundle, "schedule": schedule}
	for kind, obj := range kinds {
		obj.SetFinalizers([]string{"fleet.cattle.io/" + kind + "-finalizer"})
		w.create(obj)
		w.must(w.client.Delete(w.ctx, obj))
		if !w.exists(obj) {
			t.Fatalf("%T is gone before the hub begins: nothing is shown", obj)
		}
	}
	w.start()
	for _, obj := range kinds {
		w.gone(obj)
	}
	if w.exists(&fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: named.Name}}) {
		t.Error("what is being deleted was deployed")
	}
}

// TestWhatFleetApplyStored is there after a move without a GitRepo that would
// write it anew: it says what to do, and does not wait for ever.
func TestWhatFleetApplyStored(t *testing.T) {
	w := newWhole(t)
	w.start()
	for name, spec := range map[string]fleet.BundleSpec{
		"values":  {ValuesHash: "1a2b3c4d5e6f", Resources: configMap("one")},
		"content": {ContentsID: "s-1a2b3c4d5e6f"},
	} {
		b := &fleet.Bundle{ObjectMeta: w.meta(name), Spec: spec}
		w.create(b)
		w.eventually("say what to do about "+name, func() bool {
			w.exists(b)
			rendered := fleet.FindCondition(b.Status.Conditions, fleet.ConditionRendered)
			return rendered != nil && rendered.Reason == "StoredByRancherFleet" && strings.Contains(rendered.Message, "flotilla apply")
		})
		base := b.DeepCopy()
		b.Spec = fleet.BundleSpec{Resources: configMap("one")}
		w.must(w.client.Patch(w.ctx, b, client.MergeFrom(base)))
		w.eventually("go on with "+name, func() bool {
			w.exists(b)
			return fleet.IsConditionTrue(b.Status.Conditions, fleet.ConditionRendered)
		})
	}
}
