// Package fair shares the workers of a controller between the namespaces that
// ask for them: the repositories, charts and templates of one tenant can take
// minutes, and another's need not wait for them.
package fair

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/flotilla-sh/flotilla/internal/reconcile"
)

// Workers is how many objects a controller works at. One namespace has half of
// them where it is alone.
const Workers = 8

// Options are those of a controller that shares its workers.
func Options() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: Workers, RateLimiter: reconcile.Backoff[ctrl.Request](),
		NewQueue: func(name string, limiter workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request] {
			next := priorityqueue.New(name, func(o *priorityqueue.Opts[ctrl.Request]) { o.RateLimiter = limiter })
			return newQueue(next, Workers)
		},
	}
}

// queue hands out the requests of another one. A namespace never has more of
// them under way than there are workers left for the others; what is too much of
// it is put aside, and handed out when it has its turn.
type queue struct {
	priorityqueue.PriorityQueue[ctrl.Request]

	mu sync.Mutex
	// free are the workers that have nothing, busy those of each namespace.
	free int
	busy map[string]int
	// aside are requests that wait for their turn, by namespace, in the order in
	// which they came.
	aside map[string][]waiting
}

// waiting is a request that was put aside. The queue behind takes it for one that
// is under way.
type waiting struct {
	request  ctrl.Request
	priority int
}

func newQueue(next priorityqueue.PriorityQueue[ctrl.Request], workers int) *queue {
	return &queue{PriorityQueue: next, free: workers, busy: map[string]int{}, aside: map[string][]waiting{}}
}

// GetWithPriority waits for a request whose namespace may have a worker.
func (q *queue) GetWithPriority() (ctrl.Request, int, bool) {
	if next, ok := q.turn(); ok && !q.ShuttingDown() {
		return next.request, next.priority, false
	}
	for {
		request, priority, shutdown := q.PriorityQueue.GetWithPriority()
		if shutdown || q.take(waiting{request, priority}) {
			return request, priority, shutdown
		}
	}
}

// Get is GetWithPriority without the priority.
func (q *queue) Get() (ctrl.Request, bool) {
	request, _, shutdown := q.GetWithPriority()
	return request, shutdown
}

// Done gives the worker of a request back. Who does so asks for another request
// next, and is who works at one that was put aside until now.
func (q *queue) Done(request ctrl.Request) {
	q.mu.Lock()
	q.free++
	if q.busy[request.Namespace]--; q.busy[request.Namespace] == 0 {
		delete(q.busy, request.Namespace)
	}
	q.mu.Unlock()
	q.PriorityQueue.Done(request)
}

// Add adds a request.
func (q *queue) Add(request ctrl.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, request) }

// AddWithOpts adds requests. One that was put aside is there already.
func (q *queue) AddWithOpts(o priorityqueue.AddOpts, requests ...ctrl.Request) {
	for _, request := range requests {
		if o.After > 0 || o.RateLimited || !q.raise(request, o.Priority) {
			q.PriorityQueue.AddWithOpts(o, request)
		}
	}
}

// raise lets a request that was put aside have the higher priority, and tells
// whether there is one.
func (q *queue) raise(request ctrl.Request, priority *int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.aside[request.Namespace]
	for i := range all {
		if all[i].request != request {
			continue
		}
		wanted := 0
		if priority != nil {
			wanted = *priority
		}
		all[i].priority = max(all[i].priority, wanted)
		return true
	}
	return false
}

// take gives a worker to a request, or puts it aside.
func (q *queue) take(w waiting) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	of := w.request.Namespace
	if !q.may(of) {
		q.aside[of] = append(q.aside[of], w)
		return false
	}
	q.begin(of)
	return true
}

// may tells whether a namespace may have one worker more.
func (q *queue) may(namespace string) bool { return q.busy[namespace] < q.free }

func (q *queue) begin(namespace string) {
	q.free--
	q.busy[namespace]++
}

// turn gives a worker to the request that has waited for its turn with the
// highest priority, of the namespace that has the fewest.
func (q *queue) turn() (waiting, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	chosen, found := "", false
	for namespace := range q.aside {
		if q.may(namespace) && (!found || q.busy[namespace] < q.busy[chosen]) {
			chosen, found = namespace, true
		}
	}
	if !found {
		return waiting{}, false
	}
	q.begin(chosen)
	return q.pick(chosen), true
}

// pick takes the next request of a namespace out of those put aside.
func (q *queue) pick(namespace string) waiting {
	all := q.aside[namespace]
	best := 0
	for i := range all {
		if all[i].priority > all[best].priority {
			best = i
		}
	}
	picked := all[best]
	if all = append(all[:best], all[best+1:]...); len(all) == 0 {
		delete(q.aside, namespace)
	} else {
		q.aside[namespace] = all
	}
	return picked
}
