package hubtest_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/apireq"
	"github.com/flotilla-sh/flotilla/internal/names"
	"github.com/flotilla-sh/flotilla/internal/target"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// edit changes an object as a person does.
func (w *whole) edit(obj client.Object, change func()) {
	w.Helper()
	w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(obj), obj))
	base := obj.DeepCopyObject().(client.Object)
	change()
	w.must(w.client.Patch(w.ctx, obj, client.MergeFrom(base)))
}

// marked returns the deployments that carry a removal mark, or are gone.
func (w *whole) marked(bundle string, spaces ...string) []string {
	w.Helper()
	var out []string
	for _, space := range spaces {
		d := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: bundle}}
		if !w.exists(d) || d.Spec.Removal != nil {
			out = append(out, space)
		}
	}
	return out
}

// says waits until a condition is false for an invalid selector of something.
func (w *whole) says(obj client.Object, conditions *[]fleet.Condition, conditionType, of string) {
	w.Helper()
	w.eventually("say what is wrong with "+of, func() bool {
		w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(obj), obj))
		c := fleet.FindCondition(*conditions, conditionType)
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == target.ReasonInvalidSelector && strings.Contains(c.Message, of)
	})
}

// TestASlipInASelectorRemovesNothing mistypes the selectors of a ClusterGroup and of a
// BundleNamespaceMapping, which the API server takes as they are.
func TestASlipInASelectorRemovesNothing(t *testing.T) {
	w := newWhole(t)
	w.start()
	spaces := w.clusters(1)
	far := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace + "-far", Name: "f00"}}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: far.Namespace, Labels: map[string]string{"is": far.Namespace}}})
	w.create(far)
	farSpace := names.ClusterNamespace(far.Namespace, far.Name)
	report := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: farSpace, Name: fleet.CapabilitiesName}}
	w.eventually("register", func() bool { return w.exists(report) })
	w.edit(report, func() { report.Data = map[string]string{fleet.CapabilitiesVersionKey: "v1.36.3"} })
	mapping := &fleet.BundleNamespaceMapping{
		ObjectMeta:        w.meta("far"),
		BundleSelector:    &metav1.LabelSelector{MatchLabels: map[string]string{"far": "yes"}},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"is": far.Namespace}},
	}
	w.create(mapping)
	grouped := &fleet.Bundle{ObjectMeta: w.meta("grouped")}
	grouped.Spec.Resources = configMap("one")
	grouped.Spec.Targets = []fleet.BundleTarget{{ClusterGroup: "all"}}
	w.create(grouped)
	mapped := w.bundle("mapped")
	w.edit(mapped, func() { mapped.Labels = map[string]string{"far": "yes"} })
	plain := w.bundle("plain")
	ready := func() bool {
		there := 0
		for _, space := range []string{spaces[0], farSpace} {
			list := &fleet.BundleDeploymentList{}
			w.must(w.client.List(w.ctx, list, client.InNamespace(space)))
			for i := range list.Items {
				w.reportReady(&list.Items[i])
			}
			there += len(list.Items)
		}
		return there == 4 && w.allReady("grouped", "mapped", "plain")
	}
	w.eventually("deploy", ready)

	all := &fleet.ClusterGroup{ObjectMeta: w.meta("all")}
	slip := []metav1.LabelSelectorRequirement{{Key: "env", Operator: "in", Values: []string{"test"}}}
	w.edit(all, func() { all.Spec.Selector = &metav1.LabelSelector{MatchExpressions: slip} })
	w.says(grouped, &grouped.Status.Conditions, fleet.ConditionRendered, "ClusterGroup "+w.namespace+"/all")
	w.says(all, &all.Status.Conditions, fleet.ConditionReady, "selector")
	// Who asks for no group goes on.
	w.edit(plain, func() { plain.Spec.Resources = configMap("two") })
	w.eventually("go on", func() bool {
		d := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: spaces[0], Name: "plain"}}
		return w.exists(d) && d.Status.AppliedDeploymentID != d.Spec.DeploymentID
	})
	w.edit(mapping, func() { mapping.BundleSelector = &metav1.LabelSelector{MatchExpressions: slip} })
	w.says(mapped, &mapped.Status.Conditions, fleet.ConditionRendered, "BundleNamespaceMapping "+w.namespace+"/far: bundleSelector")
	w.rest()
	lost := append(w.marked("grouped", spaces...), w.marked("mapped", spaces[0], farSpace)...)
	if len(lost) > 0 {
		t.Errorf("a slip takes something off %v", lost)
	}

	w.edit(mapping, func() { mapping.BundleSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"far": "yes"}} })
	w.edit(all, func() { all.Spec.Selector = &metav1.LabelSelector{} })
	w.eventually("deploy again", ready)
	// The label of a namespace that is meant counts, and at once.
	w.rest()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: far.Namespace}}
	w.edit(space, func() { space.Labels["is"] = "closed" })
	w.eventually("take it off", func() bool { return len(w.marked("mapped", farSpace)) == 1 })
	w.edit(space, func() { space.Labels["is"] = far.Namespace })
	w.eventually("put it back", func() bool { return len(w.marked("mapped", farSpace)) == 0 })
	// So does a selector.
	w.edit(mapping, func() { mapping.BundleSelector.MatchLabels["far"] = "no" })
	w.eventually("take it off", func() bool { return len(w.marked("mapped", farSpace)) == 1 })
}

// laggard lets the watch of one resource say nothing while mu is held.
type laggard struct {
	next     http.RoundTripper
	resource string
	mu       sync.RWMutex
}

func (l *laggard) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(r)
	if q := apireq.Of(r); err == nil && q.Verb == apireq.Watch && q.Resource == l.resource {
		response.Body = lagging{response.Body, l}
	}
	return response, err
}

type lagging struct {
	io.ReadCloser
	by *laggard
}

func (l lagging) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	l.by.mu.RLock()
	defer l.by.mu.RUnlock()
	return n, err
}

// TestACacheThatHasNotHeardRemovesNothing relabels a cluster and retargets its
// bundle at once, and the watch of clusters is late.
func TestACacheThatHasNotHeardRemovesNothing(t *testing.T) {
	w := newWhole(t)
	late := &laggard{resource: "clusters"}
	w.wrap = func(next http.RoundTripper) http.RoundTripper { late.next = next; return late }
	w.start()
	spaces := w.clusters(2)
	b := &fleet.Bundle{ObjectMeta: w.meta("app")}
	b.Spec.Resources = configMap("one")
	ring := func(name string) []fleet.BundleTarget {
		return []fleet.BundleTarget{{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": name}}}}
	}
	b.Spec.Targets = ring("test")
	w.create(b)
	w.agents(spaces, b.Name)
	w.rest()

	late.mu.Lock()
	c := &fleet.Cluster{ObjectMeta: w.meta("c00")}
	w.edit(c, func() { c.Labels["env"] = "gold" })
	w.edit(b, func() { b.Spec.Targets = ring("gold") })
	w.eventually("take it off the other cluster", func() bool { return len(w.marked(b.Name, spaces[1])) == 1 })
	w.rest()
	marked := w.marked(b.Name, spaces[0])
	late.mu.Unlock()
	if len(marked) > 0 {
		t.Error("a cluster that is targeted loses the bundle")
	}
	w.agents(spaces[:1], b.Name)
	if len(w.marked(b.Name, spaces[0])) > 0 {
		t.Error("a cluster that is targeted has lost the bundle")
	}
}

// TestAnOldCommitMeetsNoNewTargets changes what a GitRepo follows and whom it is
// for in one edit, while the new repository does not answer: the commit of the
// old one stays where it was.
func TestAnOldCommitMeetsNoNewTargets(t *testing.T) {
	w := newWhole(t)
	push, url := w.serveGit()
	push("app", map[string]string{"a.yaml": configMap("one")[0].Content})
	repo := &fleet.GitRepo{ObjectMeta: w.meta("app"), Spec: fleet.GitRepoSpec{
		Repo: url + "/app.git", Branch: "main", PollingInterval: &metav1.Duration{Duration: time.Hour},
		Targets: []fleet.GitTarget{{ClusterName: "staging"}},
	}}
	w.create(repo)
	w.start()
	b := &fleet.Bundle{ObjectMeta: w.meta("app")}
	targets := func(name string) bool {
		return w.exists(b) && len(b.Spec.Targets) > 0 && b.Spec.Targets[0].ClusterName == name
	}
	w.eventually("the first targets", func() bool { return targets("staging") })
	w.edit(repo, func() { repo.Spec.Repo, repo.Spec.Targets[0].ClusterName = url+"/next.git", "production" })
	w.eventually("the hub waits for the new repository", func() bool {
		return w.exists(repo) && slices.ContainsFunc(repo.Status.Conditions, func(c fleet.Condition) bool {
			return strings.Contains(c.Message, "waiting for the newest commit")
		})
	})
	if !targets("staging") {
		t.Errorf("the old commit is for %+v", b.Spec.Targets)
	}
	w.edit(repo, func() { repo.Spec.Repo = url + "/app.git" })
	w.eventually("the new targets", func() bool { return targets("production") })
}
