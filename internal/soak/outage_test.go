package soak_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/apireq"
	"github.com/flotilla-sh/flotilla/internal/faultproxy"
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
