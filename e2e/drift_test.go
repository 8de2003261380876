package e2e

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// person is the program with which the tests edit objects on spokes by hand.
const person = "kubectl-edit"

// byHand edits an object on a spoke with a merge patch.
func (w *world) byHand(t *testing.T, spoke string, obj client.Object, patch string) {
	t.Helper()
	err := w.spokes[spoke].Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(person))
	if err != nil {
		t.Fatal(err)
	}
}

func configMapOf(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// modified waits until these objects of a deployment, and no others, are
// reported as not as they were applied.
func (w *world) modified(t *testing.T, repo, deployment string, names ...string) map[string]fleet.ModifiedStatus {
	t.Helper()
	var found map[string]fleet.ModifiedStatus
	eventually(t, deployment+" is modified", func() error {
		found = map[string]fleet.ModifiedStatus{}
		for _, m := range w.deployments(t, repo)[deployment].Status.ModifiedStatus {
			found[m.Name] = m
		}
		if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, names) {
			return fmt.Errorf("modified are %v, want %v", got, names)
		}
		return nil
	})
	return found
}

func TestEditByHandIsShownWithFieldValuesAndProgram(t *testing.T) {
	t.Parallel()
	w := shared
	r := w.repository(t, "drift")
	repo := w.declare(t, "drift", r)
	commit := r.commit(app("drift", "wanted"))
	w.rolledOut(t, repo, commit)

	w.byHand(t, "prod", configMapOf("drift", "drift"), `{"data":{"value":"live"}}`)
	m := w.modified(t, "drift", "prod/drift-app", "drift")["drift"]
	if want := (fleet.FieldDrift{Path: "data.value", Desired: `"wanted"`, Live: `"live"`}); !slices.Equal(m.Fields, []fleet.FieldDrift{want}) {
		t.Errorf("fields are %+v, want %+v", m.Fields, want)
	}
	if len(m.By) != 1 || m.By[0].Manager != person || m.By[0].Operation != "Update" || m.By[0].Time == nil {
		t.Errorf("by is %+v, want %s, Update and a time", m.By, person)
	}
	const message = `Modified(1) [Cluster fleet-default/prod]; configmap.v1 drift/drift modified {"data":{"value":"wanted"}} by ` + person
	w.says(t, repo, message)
	eventually(t, "message of the bundle", func() error { return bundleSays(w.bundles(t, "drift"), message) })
	if got, err := w.gitRepo(repo); err != nil || got.Status.Summary.Modified != 1 || got.Status.Summary.Ready != 2 {
		t.Errorf("summary %+v, %v", got.Status.Summary, err)
	}

	w.byHand(t, "prod", configMapOf("drift", "drift"), `{"data":{"value":"wanted"}}`)
	w.rolledOut(t, repo, commit)
}

func bundleSays(bundles []fleet.Bundle, part string) error {
	if len(bundles) != 1 {
		return fmt.Errorf("there are %d bundles", len(bundles))
	}
	err := ready(bundles[0].Status.Conditions)
	if err == nil {
		return errors.New("the bundle is Ready")
	}
	return says(err.Error(), part)
}

// workload is a Deployment with one replica.
func workload(name string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + "}\nspec:\n  replicas: 1\n  selector: {matchLabels: {app: " + name + "}}\n" +
		"  template:\n    metadata: {labels: {app: " + name + "}}\n    spec:\n      containers: [{name: c, image: registry.k8s.io/pause:3.10}]\n"
}

// What others add, or scale, is theirs. An edit of a neighbour of the same kind
// tells when the agent has seen the rest.
func TestWhatOthersAddIsNoDrift(t *testing.T) {
	t.Parallel()
	w := shared
	r := w.repository(t, "calm")
	repo := w.declare(t, "calm", r)
	commit := r.commit(files{
		"app/fleet.yaml": "defaultNamespace: calm\n",
		"app/a.yaml":     configMapYAML("a", "1"), "app/a-probe.yaml": configMapYAML("a-probe", "1"),
		"app/web.yaml": workload("web"), "app/web-probe.yaml": workload("web-probe"),
	})
	w.rolledOut(t, repo, commit)

	w.byHand(t, "dev", configMapOf("calm", "a"), `{"data":{"foreign":"x"},"metadata":{"annotations":{"example.com/note":"x"},"labels":{"foreign":"x"}}}`)
	web := &metav1.PartialObjectMetadata{}
	web.APIVersion, web.Kind, web.Namespace, web.Name = "apps/v1", "Deployment", "calm", "web"
	w.byHand(t, "dev", web, `{"spec":{"minReadySeconds":1}}`)
	scaled, err := w.deploymentOf("dev", "calm", "web")
	if err != nil {
		t.Fatal(err)
	}
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
	if err := w.spokes["dev"].SubResource("scale").Update(t.Context(), scaled, client.WithSubResourceBody(scale), client.FieldOwner("cluster-autoscaler")); err != nil {
		t.Fatal(err)
	}
	w.byHand(t, "dev", configMapOf("calm", "a-probe"), `{"data":{"value":"2"}}`)
	probe := web.DeepCopy()
	probe.Name = "web-probe"
	w.byHand(t, "dev", probe, `{"spec":{"replicas":2}}`)
	found := w.modified(t, "calm", "dev/calm-app", "a-probe", "web-probe")
	if f := found["web-probe"].Fields; len(f) != 1 || f[0] != (fleet.FieldDrift{Path: "spec.replicas", Desired: "1", Live: "2"}) {
		t.Errorf("fields are %+v", f)
	}

	last := r.commit(files{"app/a.yaml": configMapYAML("a", "2")})
	w.rolledOut(t, repo, last)
	if scaled, err = w.deploymentOf("dev", "calm", "web"); err != nil || *scaled.Spec.Replicas != 3 {
		t.Errorf("a commit took the replicas from their autoscaler: %v, %v", scaled.Spec.Replicas, err)
	}
	if a, err := w.configMap("dev", "calm", "a"); err != nil || a.Data["foreign"] != "x" || a.Data["value"] != "2" {
		t.Errorf("after the commit: %v, %v", a.Data, err)
	}
}

func TestDeletedObjectIsMissing(t *testing.T) {
	t.Parallel()
	w := shared
	r := w.repository(t, "lost")
	repo := w.declare(t, "lost", r)
	w.rolledOut(t, repo, r.commit(app("lost", "1")))
	if err := w.spokes["staging"].Delete(t.Context(), configMapOf("lost", "lost")); err != nil {
		t.Fatal(err)
	}
	m := w.modified(t, "lost", "staging/lost-app", "lost")["lost"]
	if !m.Create || m.Exist || m.Delete {
		t.Errorf("a deleted object is reported as %+v", m)
	}
	w.says(t, repo, "Cluster fleet-default/staging", "configmap.v1 lost/lost missing")
	w.rolledOut(t, repo, r.commit(app("lost", "2")))
	w.hasValue(t, "lost", "lost", "2", all...)
}

func TestDriftIsCorrectedWhereAsked(t *testing.T) {
	t.Parallel()
	w := shared
	r := w.repository(t, "corrected")
	repo := w.declare(t, "corrected", r, func(g *fleet.GitRepo) { g.Spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true} })
	commit := r.commit(app("corrected", "1"))
	w.rolledOut(t, repo, commit)
	w.byHand(t, "prod", configMapOf("corrected", "corrected"), `{"data":{"value":"2"}}`)
	w.hasValue(t, "corrected", "corrected", "1", "prod")
	if err := w.spokes["prod"].Delete(t.Context(), configMapOf("corrected", "corrected")); err != nil {
		t.Fatal(err)
	}
	w.hasValue(t, "corrected", "corrected", "1", "prod")
	w.rolledOut(t, repo, commit)
}
