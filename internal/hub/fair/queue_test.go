package fair

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

func request(namespace string, n int) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(n)}}
}

// crew are workers that keep what they were handed out until they are told.
type crew struct {
	*queue
	got chan ctrl.Request

	mu    sync.Mutex
	under map[ctrl.Request]chan struct{}
}

func newCrew(t *testing.T, workers int) *crew {
	next := priorityqueue.New("test", func(*priorityqueue.Opts[ctrl.Request]) {})
	c := &crew{queue: newQueue(next, workers), got: make(chan ctrl.Request, 1000), under: map[ctrl.Request]chan struct{}{}}
	for range workers {
		go c.work()
	}
	t.Cleanup(func() {
		c.ShutDown()
		for r := range c.under {
			c.finish(r)
		}
	})
	return c
}

func (c *crew) work() {
	for {
		r, shutdown := c.Get()
		if shutdown {
			return
		}
		done := make(chan struct{})
		c.mu.Lock()
		c.under[r] = done
		c.mu.Unlock()
		c.got <- r
		<-done
		c.Done(r)
	}
}

// finish lets the worker of a request be done with it.
func (c *crew) finish(r ctrl.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.under[r])
	delete(c.under, r)
}

// began returns what has begun since the last call.
func (c *crew) began() (all []ctrl.Request) {
	synctest.Wait()
	for len(c.got) > 0 {
		all = append(all, <-c.got)
	}
	return all
}

func count(all []ctrl.Request, namespace string) int {
	return len(slices.DeleteFunc(slices.Clone(all), func(r ctrl.Request) bool { return r.Namespace != namespace }))
}

func TestNoNamespaceHasAllWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, 8)
		for i := range 100 {
			c.Add(request("a", i))
		}
		under := c.began()
		if len(under) != 4 {
			t.Fatalf("a namespace alone has %d workers, want half of 8", len(under))
		}
		// Each further one finds some left, also where those before give none back.
		for i, want := range []int{2, 1, 1} {
			of := string(rune('b' + i))
			for n := range 100 {
				c.Add(request(of, n))
			}
			if got := c.began(); len(got) != want || count(got, of) != want {
				t.Fatalf("namespace %s has %v, want %d workers", of, got, want)
			}
		}
		// Whoever gives one back, who has fewest gets it.
		c.Add(request("e", 0))
		c.finish(under[0])
		if got := c.began(); len(got) != 1 || got[0].Namespace != "e" {
			t.Fatalf("after the first is done: %v, want the one of e", got)
		}
	})
}

func TestAllIsHandedOutOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, 8)
		const each = 50
		for i := range each {
			for _, of := range []string{"a", "b", "c"} {
				c.Add(request(of, i))
			}
		}
		seen := map[ctrl.Request]int{}
		under := c.began()
		for _, put := range c.aside["a"] {
			c.Add(put.request) // it waits already
		}
		for ; len(under) > 0; under = under[1:] {
			seen[under[0]]++
			c.finish(under[0])
			under = append(under, c.began()...)
		}
		for r, n := range seen {
			if n != 1 {
				t.Errorf("%v is handed out %d times", r, n)
			}
		}
		if len(seen) != 3*each || len(c.aside) > 0 || len(c.busy) > 0 || c.free != 8 {
			t.Errorf("%d of %d are handed out; left are %d namespaces; busy %v, free %d", len(seen), 3*each, len(c.aside), c.busy, c.free)
		}
	})
}

func TestWhatIsUrgentIsNotPutBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t, 2)
		for i := range 50 {
			c.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(-100)}, request("a", i))
		}
		under := c.began()
		c.Add(request("a", 30))
		c.Add(request("a", 99))
		c.began()
		for _, want := range []int{30, 99} {
			c.finish(under[0])
			under = c.began()
			if len(under) != 1 || under[0] != request("a", want) {
				t.Fatalf("next is %v, want %d, which somebody has changed", under, want)
			}
		}
	})
}
