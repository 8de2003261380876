// Package gauges counts the fleet for Prometheus: how many GitRepos, HelmOps,
// bundles, clusters and deployments are in which state. It reads what is cached, when it
// is asked.
package gauges

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// patience is how long the cache may take; it answers from memory.
const patience = 5 * time.Second

// Collector is a prometheus.Collector of the hub's objects.
type Collector struct {
	client                                            client.Reader
	gitRepos, helmOps, bundles, clusters, deployments *prometheus.Desc
}

// Register shows them. The last hub of a process is the one to look at; only
// tests have several, which may be at it at once.
func Register(at prometheus.Registerer, from client.Reader) error {
	c := New(from)
	at.Unregister(c)
	err := at.Register(c)
	if _, other := errors.AsType[prometheus.AlreadyRegisteredError](err); other {
		return nil
	}
	return err
}

// New makes a Collector that reads from a cache.
func New(from client.Reader) *Collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("flotilla_hub_"+name, help, []string{"namespace", "state"}, nil)
	}
	return &Collector{
		client:   from,
		gitRepos: desc("gitrepos", "GitRepos by the reason of their Ready condition."),
		helmOps:  desc("helmops", "HelmOps by the reason of their Ready condition."),
		bundles:  desc("bundles", "Bundles by the reason of their Ready condition."),
		clusters: desc("clusters", "Clusters by Offline, NeverSeen, or the reason of their Ready condition."),
		deployments: desc("deployments",
			"Deployments, each of one bundle on one cluster, by state and the namespace of the cluster."),
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.gitRepos, c.helmOps, c.bundles, c.clusters, c.deployments} {
		out <- d
	}
}

// Collect implements prometheus.Collector. What cannot be read yet is left out.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	repos, ops, bundles, clusters := &fleet.GitRepoList{}, &fleet.HelmOpList{}, &fleet.BundleList{}, &fleet.ClusterList{}
	if c.client.List(ctx, repos, client.UnsafeDisableDeepCopy) == nil {
		counts := tally{}
		for i := range repos.Items {
			counts.add(&repos.Items[i], stateOf(repos.Items[i].Status.Conditions), 1)
		}
		counts.send(out, c.gitRepos)
	}
	if c.client.List(ctx, ops, client.UnsafeDisableDeepCopy) == nil {
		counts := tally{}
		for i := range ops.Items {
			counts.add(&ops.Items[i], stateOf(ops.Items[i].Status.Conditions), 1)
		}
		counts.send(out, c.helmOps)
	}
	if c.client.List(ctx, bundles, client.UnsafeDisableDeepCopy) == nil {
		counts := tally{}
		for i := range bundles.Items {
			counts.add(&bundles.Items[i], stateOf(bundles.Items[i].Status.Conditions), 1)
		}
		counts.send(out, c.bundles)
	}
	if c.client.List(ctx, clusters, client.UnsafeDisableDeepCopy) == nil {
		counts, deployments := tally{}, tally{}
		for i := range clusters.Items {
			cluster := &clusters.Items[i]
			counts.add(cluster, clusterState(cluster.Status.Conditions), 1)
			deployments.addSummary(cluster, &cluster.Status.Summary)
		}
		counts.send(out, c.clusters)
		deployments.send(out, c.deployments)
	}
}

// tally counts by namespace and state.
type tally map[[2]string]int

func (t tally) add(of client.Object, state string, n int) {
	if n > 0 {
		t[[2]string{of.GetNamespace(), state}] += n
	}
}

func (t tally) addSummary(of client.Object, s *fleet.BundleSummary) {
	for state, n := range map[fleet.BundleState]int{
		fleet.Ready: s.Ready, fleet.NotReady: s.NotReady, fleet.WaitApplied: s.WaitApplied, fleet.ErrApplied: s.ErrApplied,
		fleet.OutOfSync: s.OutOfSync, fleet.Modified: s.Modified, fleet.Pending: s.Pending, fleet.StateOffline: s.Offline,
	} {
		t.add(of, string(state), n)
	}
}

func (t tally) send(out chan<- prometheus.Metric, desc *prometheus.Desc) {
	for at, n := range t {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), at[0], at[1])
	}
}

// clusterState tells first whether the agent reports at all.
func clusterState(conditions []fleet.Condition) string {
	online := fleet.FindCondition(conditions, fleet.ConditionOnline)
	switch {
	case online == nil || online.Status == metav1.ConditionUnknown:
		return fleet.ReasonNeverSeen
	case online.Status == metav1.ConditionFalse:
		return string(fleet.StateOffline)
	}
	return stateOf(conditions)
}

// stateOf is the reason of the Ready condition, as "flotilla status" shows it.
func stateOf(conditions []fleet.Condition) string {
	c := fleet.FindCondition(conditions, fleet.ConditionReady)
	switch {
	case c == nil:
		return "Unknown"
	case c.Status == metav1.ConditionTrue:
		return string(fleet.Ready)
	}
	return cmp.Or(c.Reason, string(fleet.NotReady))
}
