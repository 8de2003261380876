// Package lease is the controller that judges which clusters are silent. Age
// is measured by the hub's clock from the last change of an agent's Lease that
// this hub saw, so a wrong clock on a cluster, or an hour in which the API
// server was away, takes nobody offline. It writes the Online condition of
// Clusters, and what agents tell of themselves.
package lease

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-sh/flotilla/internal/names"
	"github.com/flotilla-sh/flotilla/internal/reconcile"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// missed is how many heartbeats in a row make a cluster offline.
	missed = 3
	// defaultHeartbeat is assumed where a Lease does not tell.
	defaultHeartbeat = time.Minute
	// workers is how many clusters are judged at once: a fleet that comes at
	// once is to be seen soon.
	workers = 8
)

// Contact knows how long the API server has been in reach without a gap: while
// it is away no agent can report, which proves nothing about the agents.
type Contact interface {
	Since() time.Time
}

// Controller judges.
type Controller struct {
	Contact Contact
	Client  client.Client
	Events  events.EventRecorder
	Clock   clock.PassiveClock

	mu       sync.Mutex
	seen     map[types.NamespacedName]sight
	statuses reconcile.Written
}

// sight is the last change of a Lease that this hub saw.
type sight struct {
	renewed time.Time // by the agent's clock; only compared
	at      time.Time // by the hub's clock
	moved   bool      // false for what was there when the hub started
	online  bool      // the cluster was judged so
}

// Setup adds the controller to a manager.
func (c *Controller) Setup(mgr ctrl.Manager) error {
	c.seen = map[types.NamespacedName]sight{}
	return ctrl.NewControllerManagedBy(mgr).
		Named("cluster-lease").
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: reconcile.Backoff[ctrl.Request]()}).
		For(&fleet.Cluster{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, registered()))).
		Watches(&coordinationv1.Lease{}, handler.EnqueueRequestsFromMapFunc(clusterOf), builder.WithPredicates(c.news())).
		Complete(c)
}

// news passes the Leases that may change a verdict. The next heartbeat of a
// cluster that is online does not, and nothing happens more often in a fleet:
// it is noted here, and looked at when the cluster could be offline.
func (c *Controller) news() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*coordinationv1.Lease), e.ObjectNew.(*coordinationv1.Lease)
		if heartbeat(before) != heartbeat(after) || after.Spec.RenewTime == nil || says(before) != says(after) {
			return true
		}
		for _, req := range clusterOf(context.Background(), after) {
			if !c.beat(req.NamespacedName, after.Spec.RenewTime.Time) {
				return true
			}
		}
		return false
	}}
}

// beat notes a heartbeat, and tells whether the cluster is online anyway.
func (c *Controller) beat(key types.NamespacedName, renewed time.Time) (online bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.look(key, renewed).online
}

// registered passes that a cluster got its namespace; its Lease may have come
// before.
func registered() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*fleet.Cluster), e.ObjectNew.(*fleet.Cluster)
		return before.Status.Namespace != after.Status.Namespace
	}}
}

// clusterOf returns the cluster whose Lease this is. An agent writes on its
// Lease, but cannot speak for another cluster: the namespace tells whose it is.
func clusterOf(_ context.Context, obj client.Object) []ctrl.Request {
	a := obj.GetAnnotations()
	key := types.NamespacedName{Namespace: a[fleet.ClusterNamespaceLabel], Name: a[fleet.ClusterLabel]}
	if obj.GetName() != fleet.AgentName || obj.GetNamespace() != names.ClusterNamespace(key.Namespace, key.Name) {
		return nil
	}
	return []ctrl.Request{{NamespacedName: key}}
}

// Reconcile judges one cluster, and looks again when it could be offline.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &fleet.Cluster{}
	if err := c.Client.Get(ctx, req.NamespacedName, cluster); err != nil {
		c.forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	key := client.ObjectKey{Namespace: names.ClusterNamespace(cluster.Namespace, cluster.Name), Name: fleet.AgentName}
	if cluster.Status.Namespace != key.Namespace || !cluster.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	lease := &coordinationv1.Lease{}
	if err := c.Client.Get(ctx, key, lease); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	patcher := c.statuses.Patcher(c.Client, cluster)
	news, again := c.take(req.NamespacedName, cluster, lease)
	if err := patcher.Status(ctx, cluster); err != nil {
		return reconcile.Result(ctx, err)
	}
	if news != nil {
		c.tell(cluster, *news)
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// take puts what a Lease tells on its Cluster. It returns the Online condition
// where that is news, and when to look again. An agent that has never reported
// is none: nothing is written before it does.
func (c *Controller) take(key types.NamespacedName, cluster *fleet.Cluster, lease *coordinationv1.Lease) (news *fleet.Condition, again time.Duration) {
	condition, again := c.judge(key, cluster, lease)
	report, refused := reportOf(lease)
	if refused != nil && condition.Status == metav1.ConditionTrue {
		condition.Reason, condition.Message = fleet.ReasonReportRefused, refused.Error()
	}
	old := fleet.FindCondition(cluster.Status.Conditions, fleet.ConditionOnline)
	if old == nil && condition.Reason == fleet.ReasonNeverSeen {
		return nil, again
	}
	if old == nil || old.Status != condition.Status || old.Reason != condition.Reason {
		fleet.SetCondition(&cluster.Status.Conditions, condition, c.Clock.Now())
		news = &condition
	}
	if lease.Spec.RenewTime != nil {
		c.mu.Lock()
		last := c.look(key, lease.Spec.RenewTime.Time)
		c.mu.Unlock()
		describe(&cluster.Status, report, last, c.Clock.Now(), news != nil)
	}
	return news, again
}

// judge returns the Online condition and when to look again, and notes it: a
// heartbeat that comes afterwards is seen in the light of this verdict.
func (c *Controller) judge(key types.NamespacedName, cluster *fleet.Cluster, lease *coordinationv1.Lease) (fleet.Condition, time.Duration) {
	if lease.Spec.RenewTime == nil {
		c.forget(key) // it is another Lease than the one that was seen
		return fleet.Condition{Type: fleet.ConditionOnline, Status: metav1.ConditionUnknown, Reason: fleet.ReasonNeverSeen,
			Message: "the agent has never reported"}, 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.look(key, lease.Spec.RenewTime.Time)
	condition, again := c.verdict(last, cluster, lease)
	last.online = condition.Status == metav1.ConditionTrue
	c.seen[key] = last
	return condition, again
}

// verdict judges by the last change of a Lease.
func (c *Controller) verdict(last sight, cluster *fleet.Cluster, lease *coordinationv1.Lease) (fleet.Condition, time.Duration) {
	allowed := missed * heartbeat(lease)
	silent := c.Clock.Since(last.at)
	age := min(silent, c.Clock.Since(c.Contact.Since()))
	if age < allowed {
		back := last.moved && silent < allowed
		if old := fleet.FindCondition(cluster.Status.Conditions, fleet.ConditionOnline); !back && old != nil && old.Status == metav1.ConditionFalse {
			// That the hub has just started, or has its API server back, is
			// no evidence that a silent agent is back.
			return *old, allowed - age
		}
		return fleet.Condition{Type: fleet.ConditionOnline, Status: metav1.ConditionTrue, Reason: fleet.ReasonOnline}, allowed - age
	}
	return fleet.Condition{Type: fleet.ConditionOnline, Status: metav1.ConditionFalse, Reason: fleet.ReasonOffline,
		Message: fmt.Sprintf("the agent is silent; it last reported at %s", lease.Spec.RenewTime.UTC().Format(time.RFC3339))}, 0
}

// look notes a Lease's renewal and returns the last one; mu is held.
func (c *Controller) look(key types.NamespacedName, renewed time.Time) sight {
	last, known := c.seen[key]
	if known && last.renewed.Equal(renewed) {
		return last
	}
	last = sight{renewed: renewed, at: c.Clock.Now(), moved: known, online: last.online}
	c.seen[key] = last
	return last
}

func (c *Controller) forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.seen, key)
}

func (c *Controller) tell(cluster *fleet.Cluster, condition fleet.Condition) {
	switch condition.Reason {
	case fleet.ReasonOnline:
		c.Events.Eventf(cluster, nil, "Normal", condition.Reason, "Watch", "the agent reports")
	case fleet.ReasonOffline, fleet.ReasonReportRefused:
		c.Events.Eventf(cluster, nil, "Warning", condition.Reason, "Watch", "%s", condition.Message)
	}
}

func heartbeat(lease *coordinationv1.Lease) time.Duration {
	if lease.Spec.LeaseDurationSeconds == nil || *lease.Spec.LeaseDurationSeconds <= 0 {
		return defaultHeartbeat
	}
	return time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
}
