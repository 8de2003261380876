package summary

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/reconcile"
	"github.com/flotilla-sh/flotilla/internal/status"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// unlucky is a cache with one Cluster and one ClusterGroup, whose first answers
// are errors.
type unlucky struct {
	cache.Cache
	failures int
	cluster  *fleet.Cluster
	group    *fleet.ClusterGroup
}

var errCache = errors.New("the cache is not ready")

func (u *unlucky) fails() bool {
	u.failures--
	return u.failures >= 0
}

func (u *unlucky) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if u.fails() {
		return errCache
	}
	switch o := obj.(type) {
	case *fleet.Cluster:
		*o = *u.cluster
	case *fleet.ClusterGroup:
		*o = *u.group
	}
	return nil
}

func (u *unlucky) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if u.fails() {
		return errCache
	}
	switch l := list.(type) {
	case *fleet.ClusterList:
		l.Items = []fleet.Cluster{*u.cluster}
	case *fleet.ClusterGroupList:
		l.Items = []fleet.ClusterGroup{*u.group}
	}
	return nil
}

// TestALookThatFailedIsNotForgotten: the events of a Cluster and of a ClusterGroup
// come once, whether or not the cache can be asked then.
func TestALookThatFailedIsNotForgotten(t *testing.T) {
	name := types.NamespacedName{Namespace: "ws", Name: "prod"}
	group := &fleet.ClusterGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "all"}, Spec: fleet.ClusterGroupSpec{Selector: &metav1.LabelSelector{}}}
	of := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	for what, obj := range map[string]client.Object{"cluster": of, "group": group} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := clocktesting.NewFakePassiveClock(time.Now())
				c := &Controller{board: status.NewBoard(), cache: &unlucky{failures: 5, cluster: of, group: group}, pace: newPace(clock), Clock: clock}
				q := workqueue.NewTypedRateLimitingQueue(reconcile.Backoff[status.Parent]())
				defer q.ShutDown()
				for _, f := range c.feeds() {
					if reflect.TypeOf(f.obj) == reflect.TypeOf(obj) {
						c.handler(t.Context(), f, q).OnAdd(obj, true)
					}
				}
				time.Sleep(time.Minute)
				if got := c.board.ClusterGroup(client.ObjectKeyFromObject(group)); got.ClusterCount != 1 {
					t.Errorf("the group has %d clusters, want 1", got.ClusterCount)
				}
			})
		})
	}
}
