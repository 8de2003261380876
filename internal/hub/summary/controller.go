// Package summary is the controller that rolls deployments up into the status
// of Bundles, GitRepos, Clusters and ClusterGroups. A board counts with every
// event; what changed is written after a short while, so that a thousand
// events of one bundle make one write. Sums are counted anew at every start.
package summary

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
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

// coalesce is how long the events of one object are gathered before its status
// is written: within what a person takes for at once.
const coalesce = 400 * time.Millisecond

type queue = workqueue.TypedRateLimitingInterface[status.Parent]

// Controller sums up.
type Controller struct {
	Client client.Client
	Clock  clock.PassiveClock

	board *status.Board
	cache cache.Cache
}

// Setup adds the controller to a manager.
func (c *Controller) Setup(mgr ctrl.Manager) error {
	c.board, c.cache = status.NewBoard(), mgr.GetCache()
	return builder.TypedControllerManagedBy[status.Parent](mgr).
		Named("summary").
		WithOptions(controller.TypedOptions[status.Parent]{MaxConcurrentReconciles: 4}).
		WatchesRawSource(source.TypedFunc[status.Parent](c.watch)).
		Complete(c)
}

// watch feeds the board from the informers.
func (c *Controller) watch(ctx context.Context, q queue) error {
	mark := func(parents []status.Parent) {
		for _, p := range parents {
			q.AddAfter(p, coalesce)
		}
	}
	feeds := []struct {
		obj client.Object
		see func(client.Object) []status.Parent
		end func(client.Object) []status.Parent
	}{
		{&fleet.BundleDeployment{},
			func(o client.Object) []status.Parent { return c.board.Observe(o.(*fleet.BundleDeployment)) },
			func(o client.Object) []status.Parent { return c.board.Forget(o.GetNamespace(), o.GetName()) }},
		{&fleet.Bundle{}, c.seeBundle,
			func(o client.Object) []status.Parent { return c.board.DeleteBundle(client.ObjectKeyFromObject(o)) }},
		{&fleet.Cluster{}, c.seeCluster,
			func(o client.Object) []status.Parent { return c.board.DeleteCluster(client.ObjectKeyFromObject(o)) }},
		{&fleet.GitRepo{}, func(o client.Object) []status.Parent { return own(status.KindGitRepo, o) }, none},
		{&fleet.ClusterGroup{}, c.seeGroup, none},
	}
	var fed []toolscache.InformerSynced
	for _, feed := range feeds {
		informer, err := c.cache.GetInformer(ctx, feed.obj)
		if err != nil {
			return fmt.Errorf("watch %T: %w", feed.obj, err)
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { mark(feed.see(obj.(client.Object))) },
			UpdateFunc: func(_, obj any) { mark(feed.see(obj.(client.Object))) },
			DeleteFunc: func(obj any) {
				if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
					obj = gone.Obj
				}
				mark(feed.end(obj.(client.Object)))
			},
		})
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

func none(client.Object) []status.Parent { return nil }

func own(kind status.Kind, obj client.Object) []status.Parent {
	return []status.Parent{{Kind: kind, Name: client.ObjectKeyFromObject(obj)}}
}

// seeBundle takes in a bundle; its own status is looked at as well, because a
// person or a restored backup may have changed it.
func (c *Controller) seeBundle(obj client.Object) []status.Parent {
	b := obj.(*fleet.Bundle)
	facts := status.BundleFacts{}
	if repo := b.Labels[fleet.RepoLabel]; repo != "" {
		facts.GitRepo = types.NamespacedName{Namespace: b.Namespace, Name: repo}
	}
	if rendered := fleet.FindCondition(b.Status.Conditions, fleet.ConditionRendered); rendered != nil && rendered.Status == metav1.ConditionFalse {
		facts.Error = rendered.Message
	}
	return append(c.board.SetBundle(client.ObjectKeyFromObject(b), facts), own(status.KindBundle, b)...)
}

func (c *Controller) seeCluster(obj client.Object) []status.Parent {
	cluster := obj.(*fleet.Cluster)
	facts := status.ClusterFacts{Groups: c.groupsOf(cluster)}
	switch online := fleet.FindCondition(cluster.Status.Conditions, fleet.ConditionOnline); {
	case online == nil, online.Status == metav1.ConditionUnknown:
		facts.Unseen = true
	case online.Status == metav1.ConditionFalse:
		facts.Silence = online.Message
	}
	return append(c.board.SetCluster(client.ObjectKeyFromObject(cluster), facts), own(status.KindCluster, cluster)...)
}

// seeGroup takes in a group by taking in the clusters of its namespace.
func (c *Controller) seeGroup(obj client.Object) []status.Parent {
	out := own(status.KindClusterGroup, obj)
	clusters := &fleet.ClusterList{}
	if err := c.cache.List(context.Background(), clusters, client.InNamespace(obj.GetNamespace())); err != nil {
		return out
	}
	for i := range clusters.Items {
		out = append(out, c.seeCluster(&clusters.Items[i])...)
	}
	return out
}

func (c *Controller) groupsOf(cluster *fleet.Cluster) []types.NamespacedName {
	groups := &fleet.ClusterGroupList{}
	if err := c.cache.List(context.Background(), groups, client.InNamespace(cluster.Namespace)); err != nil {
		return nil
	}
	var out []types.NamespacedName
	for i := range groups.Items {
		selector, err := metav1.LabelSelectorAsSelector(groups.Items[i].Spec.Selector)
		if err == nil && selector.Matches(labels.Set(cluster.Labels)) {
			out = append(out, client.ObjectKeyFromObject(&groups.Items[i]))
		}
	}
	return out
}

// Reconcile writes the roll-up of one object where it changed.
func (c *Controller) Reconcile(ctx context.Context, parent status.Parent) (ctrl.Result, error) {
	var obj client.Object
	switch parent.Kind {
	case status.KindBundle:
		obj = &fleet.Bundle{}
	case status.KindGitRepo:
		obj = &fleet.GitRepo{}
	case status.KindCluster:
		obj = &fleet.Cluster{}
	default:
		obj = &fleet.ClusterGroup{}
	}
	if err := c.Client.Get(ctx, parent.Name, obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	patcher := reconcile.NewPatcher(c.Client, obj)
	c.fill(parent.Name, obj)
	return reconcile.Result(ctx, patcher.Status(ctx, obj))
}
