// Package summary is the controller that rolls deployments up into the status
// of Bundles, GitRepos, Clusters and ClusterGroups. A board counts with every
// event; what changed is written after a short while, so that a thousand
// events of one bundle make few writes. Sums are counted anew at every start.
package summary

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/flotilla-sh/flotilla/internal/reconcile"
	"github.com/flotilla-sh/flotilla/internal/status"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

type queue = workqueue.TypedRateLimitingInterface[status.Parent]

// writers bounds the writes that are under way: while the API server is slow,
// changes wait here and become one.
const writers = 8

// Controller sums up.
type Controller struct {
	Client client.Client
	Clock  clock.PassiveClock

	board    *status.Board
	cache    cache.Cache
	pace     *pace
	statuses reconcile.Written
	// taking orders the looks at clusters and groups: what was read later is told
	// the board later.
	taking sync.Mutex
}

// Setup adds the controller to a manager.
func (c *Controller) Setup(mgr ctrl.Manager) error {
	c.board, c.cache, c.pace = status.NewBoard(), mgr.GetCache(), newPace(c.Clock)
	return builder.TypedControllerManagedBy[status.Parent](mgr).
		Named("summary").
		WithOptions(controller.TypedOptions[status.Parent]{
			MaxConcurrentReconciles: writers, RateLimiter: reconcile.Backoff[status.Parent](),
		}).
		WatchesRawSource(source.TypedFunc[status.Parent](c.watch)).
		Complete(c)
}

// watch feeds the board from the informers.
func (c *Controller) watch(ctx context.Context, q queue) error {
	var fed []toolscache.InformerSynced
	for _, feed := range c.feeds() {
		informer, err := c.cache.GetInformer(ctx, feed.obj)
		if err != nil {
			return fmt.Errorf("watch %T: %w", feed.obj, err)
		}
		registration, err := informer.AddEventHandler(c.handler(ctx, feed, q))
		if err != nil {
			return fmt.Errorf("watch %T: %w", feed.obj, err)
		}
		fed = append(fed, registration.HasSynced)
	}
	// Nothing is written before everything is counted once.
	if !toolscache.WaitForCacheSync(ctx.Done(), fed...) {
		return ctx.Err()
	}
	return nil
}

// handler tells the board of one kind, and enqueues whose sums that changes.
func (c *Controller) handler(ctx context.Context, f feed, q queue) toolscache.ResourceEventHandler {
	mark := func(parents []status.Parent) {
		for _, p := range parents {
			q.AddAfter(p, c.pace.wait(p, c.board.Moving(p)))
		}
	}
	look := func(before, now client.Object) {
		reconcile.Persist(ctx, func() error {
			parents, err := f.see(ctx, before, now)
			mark(parents)
			if err == nil {
				return nil
			}
			// Next time it may be another one, of which all is news.
			fresh, key := f.obj.DeepCopyObject().(client.Object), client.ObjectKeyFromObject(now)
			switch e := c.cache.Get(ctx, key, fresh, client.UnsafeDisableDeepCopy); {
			case apierrors.IsNotFound(e):
				return nil
			case e == nil:
				now = fresh
			}
			before = nil
			return err
		})
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { look(nil, obj.(client.Object)) },
		UpdateFunc: func(old, obj any) { look(old.(client.Object), obj.(client.Object)) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			mark(f.end(obj.(client.Object)))
		},
	}
}

// Reconcile writes the roll-up of one object where it changed.
func (c *Controller) Reconcile(ctx context.Context, parent status.Parent) (ctrl.Result, error) {
	read := empty(parent.Kind)
	if err := c.Client.Get(ctx, parent.Name, read, client.UnsafeDisableDeepCopy); err != nil {
		c.pace.forget(parent)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	next := shallow(read)
	if err := c.fill(ctx, parent.Name, next); err != nil {
		return reconcile.Result(ctx, err)
	}
	patcher := c.statuses.PatcherFrom(c.Client, read)
	err := patcher.Status(ctx, next)
	if next.GetResourceVersion() != read.GetResourceVersion() {
		c.pace.written(parent)
	}
	return reconcile.Result(ctx, err)
}

func empty(kind status.Kind) client.Object {
	switch kind {
	case status.KindBundle:
		return &fleet.Bundle{}
	case status.KindGitRepo:
		return &fleet.GitRepo{}
	case status.KindHelmOp:
		return &fleet.HelmOp{}
	case status.KindCluster:
		return &fleet.Cluster{}
	default:
		return &fleet.ClusterGroup{}
	}
}
