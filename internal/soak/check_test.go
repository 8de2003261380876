package soak_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/apireq"
	clusternames "github.com/flotilla-sh/flotilla/internal/names"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// converge waits until everything is as it is wanted, or fails.
func (w *world) converge() {
	w.t.Helper()
	deadline := time.Now().Add(w.pace.converge)
	for {
		wrong := w.wrong()
		if len(wrong) == 0 {
			w.trace("converged")
			return
		}
		if time.Now().After(deadline) {
			w.fail("not as wanted %s after the faults have ended:\n  %s", w.pace.converge, strings.Join(wrong, "\n  "))
			return
		}
		time.Sleep(w.pace.look)
	}
}

// broken notes that a program did what it may never do.
func (w *world) broken(format string, args ...any) {
	w.trace("BROKEN: "+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.breaches++
}

// end tells the story where it went wrong, or where somebody asked for it.
func (w *world) end() {
	switch {
	case w.breaches > 0:
		w.fail("a program did %d times what it may never do (see BROKEN)", w.breaches)
	case *replay >= 0 && !w.t.Failed():
		w.t.Log(w.story())
	}
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf("seed %d: %s\nthe story:\n%s", w.seed, fmt.Sprintf(format, args...), w.story())
}

// wrong compares everything with the model.
func (w *world) wrong() []string {
	var out []string
	ready := map[string]int{}
	for i, c := range w.model.clusters {
		out = append(out, w.wrongObjects(i, c)...)
		out = append(out, w.wrongDeployments(c, ready)...)
	}
	out = append(out, w.wrongBundles(ready)...)
	out = append(out, w.wrongRepos()...)
	for i, c := range w.model.clusters {
		if len(out) == 0 {
			out = w.wrongKinds(i, c)
		}
	}
	return out
}

// wrongObjects compares the objects of a cluster.
func (w *world) wrongObjects(i int, c *cluster) []string {
	got := map[string]string{}
	shop := []client.ListOption{client.InNamespace(w.model.names.shop), client.HasLabels{fleet.DeploymentLabel}}
	configMaps, apps, jobs := &corev1.ConfigMapList{}, &appsv1.DeploymentList{}, &batchv1.JobList{}
	for _, list := range []client.ObjectList{configMaps, apps, jobs} {
		if err := w.direct.spokes[i].List(context.Background(), list, shop...); err != nil {
			return []string{err.Error()}
		}
	}
	for i := range configMaps.Items {
		cm := &configMaps.Items[i]
		got[cm.Name] = fmt.Sprintf("%s version %s", cm.Annotations[fleet.BundleAnnotation], cm.Data["version"])
	}
	for i := range apps.Items {
		got[apps.Items[i].Name] = apps.Items[i].Annotations[fleet.BundleAnnotation] + " content " + apps.Items[i].Annotations[contentMark]
	}
	// Hooks leave what their delete policies let them: the one that is deleted
	// before its next run only.
	for i := range jobs.Items {
		job := &jobs.Items[i]
		got[job.Name] = job.Annotations[fleet.BundleAnnotation] + " content " + job.Annotations[contentMark]
	}
	return differences("object "+c.name+"/", got, w.model.wanted(c))
}

// wrongKinds compares the kinds that a cluster serves with what its agent has
// reported of them.
func (w *world) wrongKinds(i int, c *cluster) []string {
	serves, err := w.direct.kinds[i].List(context.Background())
	if err != nil {
		return []string{err.Error()}
	}
	report := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: clusternames.ClusterNamespace(w.model.names.fleet, c.name), Name: fleet.CapabilitiesName}
	if err := w.direct.hub.Get(context.Background(), key, report); err != nil {
		return []string{err.Error()}
	}
	if got := strings.Split(report.Data[fleet.CapabilitiesAPIsKey], "\n"); len(got) != len(serves.Kinds) {
		return []string{fmt.Sprintf("cluster %s: %d kinds are reported, and it serves %d", c.name, len(got), len(serves.Kinds))}
	}
	return nil
}

// differences says where got is not want.
func differences(what string, got, want map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			out = append(out, fmt.Sprintf("%s%s: got %q, want %q", what, name, got[name], want[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, wanted := want[name]; !wanted {
			out = append(out, fmt.Sprintf("%s%s: %s is left behind", what, name, got[name]))
		}
	}
	return out
}

// wrongDeployments compares the deployments of a cluster and what they say, and
// counts for each bundle on how many clusters it is ready.
func (w *world) wrongDeployments(c *cluster, ready map[string]int) []string {
	list := &fleet.BundleDeploymentList{}
	namespace := clusternames.ClusterNamespace(w.model.names.fleet, c.name)
	if err := w.direct.hub.List(context.Background(), list, client.InNamespace(namespace)); err != nil {
		return []string{err.Error()}
	}
	got, want := map[string]string{}, map[string]string{}
	for _, b := range w.model.on(c) {
		want[b.name] = "Ready, as wanted"
		ready[b.name]++
	}
	for i := range list.Items {
		bd := &list.Items[i]
		state := bd.Status.Display.State
		switch {
		case bd.Spec.Removal != nil:
			state += ", marked for removal"
		case bd.Status.AppliedDeploymentID != bd.Spec.DeploymentID || bd.Status.ObservedGeneration != bd.Generation:
			state += ", behind"
		default:
			state += ", as wanted"
		}
		got[bd.Labels[fleet.BundleLabel]] = state
	}
	return differences("deployment "+c.name+"/", got, want)
}

// wrongBundles compares what the hub says of bundles and clusters.
func (w *world) wrongBundles(ready map[string]int) []string {
	list := &fleet.BundleList{}
	if err := w.direct.hub.List(context.Background(), list, client.InNamespace(w.model.names.fleet)); err != nil {
		return []string{err.Error()}
	}
	got, want := map[string]string{}, map[string]string{}
	for name := range w.model.bundles {
		want[name] = fmt.Sprintf("%d of %d, Ready True", ready[name], ready[name])
	}
	for i := range list.Items {
		b := &list.Items[i]
		condition := fleet.FindCondition(b.Status.Conditions, fleet.ConditionReady)
		got[b.Name] = fmt.Sprintf("%d of %d, Ready %s", b.Status.Summary.Ready, b.Status.Summary.DesiredReady, statusOf(condition))
		if b.Status.ObservedGeneration != b.Generation {
			got[b.Name] += ", behind"
		}
	}
	out := differences("bundle ", got, want)
	clusters := &fleet.ClusterList{}
	if err := w.direct.hub.List(context.Background(), clusters, client.InNamespace(w.model.names.fleet)); err != nil {
		return []string{err.Error()}
	}
	for i := range clusters.Items {
		c := &clusters.Items[i]
		if got := statusOf(fleet.FindCondition(c.Status.Conditions, fleet.ConditionReady)); got != "True" {
			out = append(out, fmt.Sprintf("cluster %s: Ready %s", c.Name, got))
		}
	}
	return out
}

func statusOf(c *fleet.Condition) string {
	if c == nil {
		return "unset"
	}
	text := string(c.Status)
	if c.Status != metav1.ConditionTrue {
		text += " (" + c.Message + ")"
	}
	return text
}

// quiet checks that nothing is written any more.
func (w *world) quiet() {
	w.t.Helper()
	time.Sleep(w.pace.quiet / 4)
	for _, p := range w.proxies() {
		p.Reset()
	}
	time.Sleep(w.pace.quiet)
	var written []string
	for _, c := range w.components() {
		for _, p := range c.proxies {
			for _, r := range p.Seen(restless) {
				written = append(written, c.name+": "+r.String())
			}
		}
	}
	if len(written) > 0 {
		w.fail("everything is as wanted, and yet there are %d writes in %s: %s", len(written), w.pace.quiet, strings.Join(written[:min(len(written), 20)], "\n  "))
	}
	if wrong := w.wrong(); len(wrong) > 0 {
		w.fail("what was as wanted is so no more:\n  %s", strings.Join(wrong, "\n  "))
	}
}

// restless matches writes that nothing calls for once all is well. Heartbeats,
// that the hub notes them every quarter of an hour, and the sweep of content
// that nothing names any more go on.
func restless(r apireq.Request) bool {
	if !r.Writes() {
		return false
	}
	if r.Namespace == fleet.ContentNamespace || r.Resource == "secrets" && strings.HasPrefix(r.Name, "c-") {
		return r.Verb == apireq.Create
	}
	switch r.Resource {
	case "leases", "events":
		return false
	case "clusters":
		return r.Subresource != "status" || r.Verb != apireq.Patch
	}
	return true
}
