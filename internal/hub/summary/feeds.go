package summary

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/status"
	"github.com/flotilla-sh/flotilla/internal/target"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// feed is a kind that the board is told of. Objects are those of the cache and
// are not changed; before is nil for one that is new. Both functions return
// whose status may have to be written.
type feed struct {
	obj client.Object
	see func(before, now client.Object) []status.Parent
	end func(client.Object) []status.Parent
}

func (c *Controller) feeds() []feed {
	return []feed{
		{&fleet.BundleDeployment{},
			func(_, o client.Object) []status.Parent { return c.board.Observe(o.(*fleet.BundleDeployment)) },
			func(o client.Object) []status.Parent { return c.board.Forget(o.GetNamespace(), o.GetName()) }},
		{&fleet.Bundle{}, c.seeBundle,
			func(o client.Object) []status.Parent { return c.board.DeleteBundle(client.ObjectKeyFromObject(o)) }},
		{&fleet.Cluster{}, c.seeCluster,
			func(o client.Object) []status.Parent { return c.board.DeleteCluster(client.ObjectKeyFromObject(o)) }},
		{&fleet.GitRepo{}, func(_, o client.Object) []status.Parent { return own(status.KindGitRepo, o) }, none},
		{&fleet.HelmOp{}, func(_, o client.Object) []status.Parent { return own(status.KindHelmOp, o) }, none},
		{&fleet.ClusterGroup{}, c.seeGroup, none},
	}
}

func none(client.Object) []status.Parent { return nil }

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

func (c *Controller) seeCluster(before, now client.Object) []status.Parent {
	cluster := now.(*fleet.Cluster)
	mine := own(status.KindCluster, cluster)
	if old, ok := before.(*fleet.Cluster); ok && maps.Equal(old.Labels, cluster.Labels) && online(old) == online(cluster) {
		// Most changes of a cluster are those that its summary makes.
		return mine
	}
	return append(c.takeIn(cluster, c.groups(cluster.Namespace)), mine...)
}

// takeIn tells the board what counts of a cluster beside its deployments.
func (c *Controller) takeIn(cluster *fleet.Cluster, groups []group) []status.Parent {
	facts := status.ClusterFacts{}
	switch is := online(cluster); is.Status {
	case "", metav1.ConditionUnknown:
		facts.Unseen = true
	case metav1.ConditionFalse:
		facts.Silence = is.Message
	}
	for _, g := range groups {
		if g.selector.Matches(labels.Set(cluster.Labels)) {
			facts.Groups = append(facts.Groups, g.name)
		}
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
func (c *Controller) seeGroup(before, now client.Object) []status.Parent {
	out := own(status.KindClusterGroup, now)
	if before != nil && before.GetGeneration() == now.GetGeneration() {
		return out
	}
	clusters := &fleet.ClusterList{}
	err := c.cache.List(context.Background(), clusters, client.InNamespace(now.GetNamespace()), client.UnsafeDisableDeepCopy)
	if err != nil {
		return out
	}
	groups := c.groups(now.GetNamespace())
	for i := range clusters.Items {
		out = append(out, c.takeIn(&clusters.Items[i], groups)...)
	}
	return out
}

// group is a cluster group with its selector compiled.
type group struct {
	name     types.NamespacedName
	selector labels.Selector
}

func selectorOf(g *fleet.ClusterGroup) (labels.Selector, error) {
	return target.Selector("selector", g.Spec.Selector)
}

// groups returns the cluster groups of a namespace. One whose selector is
// invalid has no clusters, and says so.
func (c *Controller) groups(namespace string) []group {
	list := &fleet.ClusterGroupList{}
	if err := c.cache.List(context.Background(), list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var out []group
	for i := range list.Items {
		selector, err := selectorOf(&list.Items[i])
		if err == nil {
			out = append(out, group{client.ObjectKeyFromObject(&list.Items[i]), selector})
		}
	}
	return out
}
