package summary

import (
	"context"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/hub/groups"
	"github.com/flotilla-sh/flotilla/internal/status"
	"github.com/flotilla-sh/flotilla/internal/target"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// feed is a kind that the board is told of. Objects are those of the cache and
// are not changed; before is nil for one that is new. Both functions return
// whose status may have to be written. One that fails has told the board nothing.
type feed struct {
	obj client.Object
	see func(ctx context.Context, before, now client.Object) ([]status.Parent, error)
	end func(client.Object) []status.Parent
}

func (c *Controller) feeds() []feed {
	return []feed{
		{&fleet.BundleDeployment{},
			sure(func(_, o client.Object) []status.Parent { return c.board.Observe(o.(*fleet.BundleDeployment)) }),
			func(o client.Object) []status.Parent { return c.board.Forget(o.GetNamespace(), o.GetName()) }},
		{&fleet.Bundle{}, sure(c.seeBundle),
			func(o client.Object) []status.Parent { return c.board.DeleteBundle(client.ObjectKeyFromObject(o)) }},
		{&fleet.Cluster{}, c.seeCluster,
			func(o client.Object) []status.Parent { return c.board.DeleteCluster(client.ObjectKeyFromObject(o)) }},
		{&fleet.GitRepo{}, sure(func(_, o client.Object) []status.Parent { return own(status.KindGitRepo, o) }), none},
		{&fleet.HelmOp{}, sure(func(_, o client.Object) []status.Parent { return own(status.KindHelmOp, o) }), none},
		{&fleet.ClusterGroup{}, c.seeGroup, none},
	}
}

func none(client.Object) []status.Parent { return nil }

// sure is a look that needs nothing but the object.
func sure(see func(before, now client.Object) []status.Parent) func(context.Context, client.Object, client.Object) ([]status.Parent, error) {
	return func(_ context.Context, before, now client.Object) ([]status.Parent, error) {
		return see(before, now), nil
	}
}

// own is an object that is summed up itself. Its own status is looked at as
// well, because a person or a restored backup may have changed it.
func own(kind status.Kind, obj client.Object) []status.Parent {
	return []status.Parent{{Kind: kind, Name: client.ObjectKeyFromObject(obj)}}
}

func (c *Controller) seeBundle(before, now client.Object) []status.Parent {
	b := now.(*fleet.Bundle)
	mine := own(status.KindBundle, b)
	facts := status.BundleFacts{}
	facts.Source = status.SourceOf(b.Namespace, b.Labels)
	if rendered := fleet.FindCondition(b.Status.Conditions, fleet.ConditionRendered); rendered != nil && rendered.Status == metav1.ConditionFalse {
		facts.Error = rendered.Message
	}
	if old, ok := before.(*fleet.Bundle); ok && behind(old) != behind(b) && facts.Source.Name.Name != "" {
		// Its repository says so, also where no deployment changes.
		mine = append(mine, facts.Source)
	}
	return append(c.board.SetBundle(client.ObjectKeyFromObject(b), facts), mine...)
}

func (c *Controller) seeCluster(ctx context.Context, before, now client.Object) ([]status.Parent, error) {
	cluster := now.(*fleet.Cluster)
	mine := own(status.KindCluster, cluster)
	if old, ok := before.(*fleet.Cluster); ok && maps.Equal(old.Labels, cluster.Labels) && online(old) == online(cluster) {
		// Most changes of a cluster are those that its summary makes.
		return mine, nil
	}
	c.taking.Lock()
	defer c.taking.Unlock()
	groups, err := groups.In(ctx, c.cache, cluster.Namespace)
	if err != nil {
		return mine, err
	}
	return append(c.takeIn(cluster, groups), mine...), nil
}

// takeIn tells the board what counts of a cluster beside its deployments.
func (c *Controller) takeIn(cluster *fleet.Cluster, groups target.Groups) []status.Parent {
	facts := status.ClusterFacts{}
	switch is := online(cluster); is.Status {
	case "", metav1.ConditionUnknown:
		facts.Unseen = true
	case metav1.ConditionFalse:
		facts.Silence = is.Message
	}
	for _, g := range groups.Of(cluster.Labels) {
		facts.Groups = append(facts.Groups, types.NamespacedName{Namespace: cluster.Namespace, Name: g.Name})
	}
	return c.board.SetCluster(client.ObjectKeyFromObject(cluster), facts)
}

// online is the Online condition of a cluster; the zero value where it has
// none.
func online(cluster *fleet.Cluster) fleet.Condition {
	if is := fleet.FindCondition(cluster.Status.Conditions, fleet.ConditionOnline); is != nil {
		return *is
	}
	return fleet.Condition{}
}

// seeGroup takes in a group by taking in the clusters of its namespace, where
// it is new or selects others now.
func (c *Controller) seeGroup(ctx context.Context, before, now client.Object) ([]status.Parent, error) {
	out := own(status.KindClusterGroup, now)
	if before != nil && before.GetGeneration() == now.GetGeneration() {
		return out, nil
	}
	c.taking.Lock()
	defer c.taking.Unlock()
	clusters := &fleet.ClusterList{}
	if err := c.cache.List(ctx, clusters, client.InNamespace(now.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return out, fmt.Errorf("list the clusters of %s: %w", now.GetNamespace(), err)
	}
	groups, err := groups.In(ctx, c.cache, now.GetNamespace())
	if err != nil {
		return out, err
	}
	for i := range clusters.Items {
		out = append(out, c.takeIn(&clusters.Items[i], groups)...)
	}
	return out, nil
}
