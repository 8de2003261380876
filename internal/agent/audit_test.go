package agent_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// audit sees all that happens to the objects of a cluster and all that its
// agent says of them, and plays the controllers that end Jobs and roll
// Deployments out. As hub and cluster are one API server here, versions of
// objects say what came before what.
type audit struct {
	w    *world
	shop string

	mu     sync.Mutex
	events []event
	latest map[string]string
}

// event is a change of one object.
type event struct {
	version uint64
	gone    bool
	obj     *unstructured.Unstructured
}

func (e event) key() string { return e.obj.GetKind() + " " + e.obj.GetName() }

// auditedKinds are the kinds that an audit sees in the bundle's namespace.
var auditedKinds = []string{"v1/ConfigMap", "batch/v1/Job", "apps/v1/Deployment"}

// newAudit watches until the end of the test.
func newAudit(w *world, shop string) *audit {
	w.t.Helper()
	a := &audit{w: w, shop: shop, latest: map[string]string{}}
	for _, kind := range auditedKinds {
		a.watch(kind, shop)
	}
	a.watch(fleet.GroupVersion.String()+"/BundleDeployment", w.namespace)
	return a
}

func listOf(kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	i := strings.LastIndex(kind, "/")
	list.SetAPIVersion(kind[:i])
	list.SetKind(kind[i+1:] + "List")
	return list
}

func (a *audit) watch(kind, namespace string) {
	a.w.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	stream, err := server.client.Watch(ctx, listOf(kind), client.InNamespace(namespace))
	if err != nil {
		a.w.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range stream.ResultChan() {
			if obj, ok := e.Object.(*unstructured.Unstructured); ok && obj.GetName() != "kube-root-ca.crt" {
				a.saw(e.Type, obj)
			}
		}
	}()
	a.w.t.Cleanup(func() {
		stop()
		stream.Stop()
		<-done
	})
}

func (a *audit) saw(what watch.EventType, obj *unstructured.Unstructured) {
	version, _ := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	e := event{version: version, gone: what == watch.Deleted, obj: obj}
	a.mu.Lock()
	a.events = append(a.events, e)
	if e.gone {
		delete(a.latest, e.key())
	} else {
		a.latest[e.key()] = obj.GetResourceVersion()
	}
	a.mu.Unlock()
	if e.gone || obj.GetDeletionTimestamp() != nil {
		return
	}
	switch obj.GetKind() {
	case "Job":
		if !completed(obj) {
			condition := "Complete"
			if strings.HasPrefix(obj.GetName(), "fails") {
				condition = "Failed"
			}
			_ = a.w.patchEnd(obj, condition) // refused where it has ended
		}
	case "Deployment":
		if !available(obj) {
			_ = a.w.patchRollOut(obj)
		}
	}
}

// completed tells whether a Job has ended, well or not.
func completed(obj *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	return len(conditions) > 0
}

// available tells whether a Deployment is rolled out as it is wanted.
func available(obj *unstructured.Unstructured) bool {
	seen, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
	return seen == obj.GetGeneration()
}

// complete returns all that has happened, in its order, once the audit has seen
// all of it.
func (a *audit) complete() []event {
	a.w.t.Helper()
	a.w.eventually(func() error {
		now := map[string]string{}
		for i, kind := range append(slices.Clone(auditedKinds), fleet.GroupVersion.String()+"/BundleDeployment") {
			namespace := a.shop
			if i == len(auditedKinds) {
				namespace = a.w.namespace
			}
			list := listOf(kind)
			if err := server.client.List(a.w.ctx, list, client.InNamespace(namespace)); err != nil {
				return err
			}
			for i := range list.Items {
				if obj := &list.Items[i]; obj.GetName() != "kube-root-ca.crt" {
					now[event{obj: obj}.key()] = obj.GetResourceVersion()
				}
			}
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if !maps.Equal(now, a.latest) {
			return fmt.Errorf("the audit has seen %v, and there is %v", a.latest, now)
		}
		return nil
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	out := slices.Clone(a.events)
	slices.SortStableFunc(out, func(a, b event) int { return cmp.Compare(a.version, b.version) })
	return out
}

// rules are what a judge looks for beside what holds always.
type rules struct {
	// kept are objects that are wanted all the time, once they are there.
	kept []string
	// returns is true where objects go back to what they were.
	returns bool
	// order are first happenings in their order.
	order []string
}

// judge goes through what has happened.
type judge struct {
	t     *testing.T
	wants map[string][]*unstructured.Unstructured
	rules
	live    map[string]*unstructured.Unstructured
	uids    map[string]string
	randoms map[string]string
	runs    map[string]map[string]bool
	log     []string
}

// judge fails the test where the agent did what it may never do: delete what is
// wanted, go back, make a random value anew, say Ready of what is not.
func (a *audit) judge(r rules) *judge {
	a.w.t.Helper()
	j := &judge{
		t: a.w.t, wants: a.w.wants, rules: r, live: map[string]*unstructured.Unstructured{},
		uids: map[string]string{}, randoms: map[string]string{}, runs: map[string]map[string]bool{},
	}
	for _, e := range a.complete() {
		switch {
		case e.obj.GetKind() == "BundleDeployment":
			j.said(e.obj)
		case e.gone:
			j.deleted(e)
		default:
			j.written(e)
		}
	}
	j.inOrder()
	if j.t.Failed() {
		j.t.Logf("what happened:\n  %s", strings.Join(j.log, "\n  "))
	}
	return j
}

func (j *judge) note(text string) {
	if !slices.Contains(j.log, text) {
		j.log = append(j.log, text)
	}
}

func (j *judge) deleted(e event) {
	j.note("gone " + e.obj.GetName())
	delete(j.live, e.key())
	if slices.Contains(j.kept, e.obj.GetName()) {
		j.t.Errorf("%s was deleted, and is wanted all the time", e.key())
	}
}

func (j *judge) written(e event) {
	name, key := e.obj.GetName(), e.key()
	uid := string(e.obj.GetUID())
	if was := j.uids[key]; was != "" && was != uid && slices.Contains(j.kept, name) {
		j.t.Errorf("%s was made anew", key)
	}
	j.uids[key] = uid
	switch e.obj.GetKind() {
	case "Job":
		j.note("made " + name)
		if j.runs[name] == nil {
			j.runs[name] = map[string]bool{}
		}
		j.runs[name][uid] = true
		if completed(e.obj) {
			j.note("ended " + name)
		}
	case "Deployment":
		j.note(fmt.Sprintf("wrote %s %d", name, e.obj.GetGeneration()))
		if available(e.obj) {
			j.note(fmt.Sprintf("rolled out %s %d", name, e.obj.GetGeneration()))
		}
	case "ConfigMap":
		j.value(key, e.obj)
	}
	j.live[key] = e.obj
}

// value judges the values of a ConfigMap.
func (j *judge) value(key string, obj *unstructured.Unstructured) {
	now := value(obj, "key")
	j.note("wrote " + obj.GetName() + " " + now)
	if was := j.live[key]; was != nil && now < value(was, "key") && !j.returns {
		j.t.Errorf("%s went back from %s to %s", key, value(was, "key"), now)
	}
	if random := value(obj, "random"); random != "" {
		of := key + " " + now
		if was := j.randoms[of]; was != "" && was != random {
			j.t.Errorf("the random value of %s was made anew: %s, was %s", of, random, was)
		}
		j.randoms[of] = random
	}
}

func value(obj *unstructured.Unstructured, key string) string {
	v, _, _ := unstructured.NestedString(obj.Object, "data", key)
	return v
}

// said judges what is said of a deployment.
func (j *judge) said(obj *unstructured.Unstructured) {
	bd := &fleet.BundleDeployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, bd); err != nil {
		j.t.Errorf("a deployment is none: %v", err)
		return
	}
	if ready(bd) != nil || bd.Spec.Removal != nil || bd.Status.AppliedDeploymentID != bd.Spec.DeploymentID {
		return
	}
	j.note(fmt.Sprintf("%s is Ready at generation %d", bd.Name, bd.Generation))
	for _, want := range j.wants[bd.Spec.DeploymentID] {
		key := event{obj: want}.key()
		live := j.live[key]
		switch {
		case want.GetAnnotations()["helm.sh/hook"] != "":
		case live == nil:
			j.t.Errorf("%s was said to be Ready without %s", bd.Name, key)
		case want.GetKind() == "Deployment" && !available(live):
			j.t.Errorf("%s was said to be Ready, and %s is not rolled out", bd.Name, key)
		case value(live, "key") != value(want, "key"):
			j.t.Errorf("%s was said to be Ready with %s at %s, wants %s", bd.Name, key, value(live, "key"), value(want, "key"))
		}
	}
	for key, live := range j.live {
		if live.GetKind() == "Job" && !completed(live) && !strings.Contains(live.GetAnnotations()["helm.sh/hook"], "delete") {
			j.t.Errorf("%s was said to be Ready while %s ran", bd.Name, key)
		}
	}
}

func (j *judge) inOrder() {
	last := -1
	for _, what := range j.order {
		at := slices.Index(j.log, what)
		if at < 0 {
			j.t.Errorf("this has not happened: %s", what)
		} else if at < last {
			j.t.Errorf("this has happened too early: %s", what)
		}
		last = max(last, at)
	}
}

// ranOnce fails where one of these hooks has not run once.
func (j *judge) ranOnce(hooks ...string) {
	j.t.Helper()
	for _, name := range hooks {
		if n := len(j.runs[name]); n != 1 {
			j.t.Errorf("hook %s ran %d times", name, n)
		}
	}
}
