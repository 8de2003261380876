package soak_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/apireq"
	"github.com/flotilla-sh/flotilla/internal/faultproxy"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// TestHooksGetTheirTime takes a cluster out of its agent's reach for longer than
// hooks are given: what is done after that gets its time all the same.
func TestHooksGetTheirTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := worldInMemory(t, 3, 1, virtual)
		w.start()
		app("b1", traits{hooks: true})(w)
		for deadline := time.Now().Add(10 * time.Minute); len(w.watch.tellings("c1")) == 0 && time.Now().Before(deadline); {
			time.Sleep(time.Second)
		}
		if told := w.watch.tellings("c1"); len(told) != 1 || told[0] != "made b1-check" {
			t.Fatalf("not where it is to begin: %v\n%s", told, w.story())
		}
		w.agents[0].proxies[1].Cut(true)
		time.Sleep(20 * time.Minute)
		w.agents[0].proxies[1].Cut(false)
		w.converge()
		w.stop()
		time.Sleep(time.Hour)
		w.end()
	})
}

// TestWavesGetTheirTime takes a cluster out of its agent's reach for longer than
// a wave is given, twice: its time does not go on meanwhile, and goes on after
// that.
func TestWavesGetTheirTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := worldInMemory(t, 3, 1, virtual)
		w.watch = nil // its model knows no such bundle
		ctx := context.Background()
		spec := fleet.BundleSpec{
			Targets:   []fleet.BundleTarget{{ClusterSelector: &metav1.LabelSelector{}}},
			Resources: []fleet.BundleResource{{Name: "a.yaml", Content: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n"}},
		}
		spec.Helm = &fleet.HelmOptions{Atomic: true, TimeoutSeconds: 300}
		w.start()
		w.must(w.direct.hub.Create(ctx, &fleet.Bundle{ObjectMeta: w.meta("web"), Spec: spec}))
		state := func(within time.Duration, wanted func(*fleet.BundleDeployment) bool) {
			t.Helper()
			bd := &fleet.BundleDeployment{}
			for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(time.Second) {
				list := &fleet.BundleDeploymentList{}
				w.must(w.direct.hub.List(ctx, list))
				for i := range list.Items {
					if bd = &list.Items[i]; wanted(bd) {
						return
					}
				}
			}
			t.Fatalf("not within %s: %+v\n%s", within, bd.Status, w.story())
		}
		says := func(text string) func(*fleet.BundleDeployment) bool {
			return func(bd *fleet.BundleDeployment) bool {
				return slices.ContainsFunc(bd.Status.Conditions, func(c fleet.Condition) bool { return strings.Contains(c.Message, text) })
			}
		}
		state(10*time.Minute, func(bd *fleet.BundleDeployment) bool { return bd.Status.Display.State == string(fleet.Ready) })
		bundle := &fleet.Bundle{}
		w.must(w.direct.hub.Get(ctx, client.ObjectKey{Namespace: w.model.names.fleet, Name: "web"}, bundle))
		// A Deployment in a namespace where nobody makes any ready.
		bundle.Spec.Resources[0].Content += "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: slow, namespace: default}\n" +
			"spec: {replicas: 1, selector: {matchLabels: {app: slow}}, template: {metadata: {labels: {app: slow}}, spec: {containers: [{name: app, image: \"app:1\"}]}}}\n"
		w.must(w.direct.hub.Update(ctx, bundle))
		state(time.Minute, says("waits for Deployment default/slow"))
		for range 2 {
			time.Sleep(time.Minute)
			w.agents[0].proxies[1].Cut(true)
			time.Sleep(time.Hour)
			w.agents[0].proxies[1].Cut(false)
			state(10*time.Minute, says("waits for Deployment default/slow"))
		}
		w.agents[0].restart()
		begin := time.Now()
		state(10*time.Minute, says("not ready within 5m0s (helm.timeoutSeconds): Deployment default/slow"))
		if took := time.Since(begin); took < 30*time.Second {
			t.Errorf("given up %s after the last outage\n%s", took, w.story())
		}
		w.stop()
		time.Sleep(time.Hour)
	})
}

// TestEndOfARemovalHookIsSeenAtOnce has the hook after a removal end after its
// agent has read it, and before the agent waits for its end.
func TestEndOfARemovalHookIsSeenAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := virtual
		p.look = time.Second
		w := worldInMemory(t, 3, 1, p)
		w.start()
		app("b1", traits{hooks: true})(w)
		w.converge()
		ended := make(chan time.Time, 1)
		var once atomic.Bool
		w.agents[0].proxies[1].Use(func(q faultproxy.Request) faultproxy.Fault {
			if q.Verb != apireq.Get || q.Resource != "jobs" || q.Name != "b1-clean" || !w.hasMade("c1", "b1-clean") || once.Swap(true) {
				return faultproxy.Fault{}
			}
			time.AfterFunc(time.Second, func() {
				job := &batchv1.Job{}
				w.must(w.direct.spokes[0].Get(context.Background(), client.ObjectKey{Namespace: w.model.names.shop, Name: q.Name}, job))
				w.finish(context.Background(), 0, job, due(job))
				ended <- time.Now()
			})
			return faultproxy.Fault{Kind: faultproxy.Slow, For: 2 * time.Second}
		})
		remove(w)
		w.converge()
		if took := time.Since(<-ended); took > 5*time.Second {
			w.fail("the end of a hook is seen after %s", took)
		}
		w.stop()
		time.Sleep(time.Hour)
		w.end()
	})
}
