package status

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// ReasonReady is the reason of a Ready condition that is True; those that are
// not have the worst state as their reason, or one of the API's.
const ReasonReady = "Ready"

// stateWaitCheckIn is what a cluster shows that has never reported.
const stateWaitCheckIn = "WaitCheckIn"

func readyCondition(status metav1.ConditionStatus, reason, message string) fleet.Condition {
	return fleet.Condition{Type: fleet.ConditionReady, Status: status, Reason: reason, Message: message}
}

// verdict is the Ready condition of anything that has deployments. Where
// nothing is wrong but silence, nobody knows.
func verdict(t *tally, message string) fleet.Condition {
	worst := t.worst()
	switch worst {
	case ready:
		return readyCondition(metav1.ConditionTrue, ReasonReady, "")
	case offline:
		return readyCondition(metav1.ConditionUnknown, fleet.ReasonOffline, message)
	default:
		return readyCondition(metav1.ConditionFalse, string(worst.name()), message)
	}
}

// bundleReady is the Ready condition of a Bundle.
func bundleReady(u *bundle) fleet.Condition {
	if u.facts.Error != "" {
		return readyCondition(metav1.ConditionFalse, fleet.ReasonError, u.facts.Error)
	}
	return verdict(&u.counter.tally, u.counter.Message())
}

// gitRepoReady is the Ready condition of a GitRepo: that of its first bundle
// that is not ready, one that is known not to be before one that is silent.
func gitRepoReady(r *repo) fleet.Condition {
	result := readyCondition(metav1.ConditionTrue, ReasonReady, "")
	for _, u := range r.sorted() {
		if u.facts.Error == "" && u.counter.allReady() {
			continue
		}
		c := bundleReady(u)
		if c.Status == metav1.ConditionFalse {
			return c
		}
		if result.Status == metav1.ConditionTrue {
			result = c
		}
	}
	return result
}

// clusterReady is the Ready condition of a Cluster.
func clusterReady(c *cluster) fleet.Condition {
	switch {
	case c.unseen:
		return readyCondition(metav1.ConditionUnknown, fleet.ReasonNeverSeen,
			"the cluster's agent has not reported yet; check that it runs and can reach the hub")
	case c.silence != nil:
		return readyCondition(metav1.ConditionUnknown, fleet.ReasonOffline, c.silence.Message)
	default:
		return verdict(&c.counter.tally, c.counter.Message())
	}
}

// groupReady is the Ready condition of a ClusterGroup.
func groupReady(g *group) fleet.Condition {
	if len(g.nonReady) == 0 {
		return verdict(&g.tally, "")
	}
	var lines []string
	for state := range ready {
		if n := g.count[state]; n > 0 {
			lines = append(lines, g.line(state, n))
		}
	}
	if !g.allReady() {
		return verdict(&g.tally, strings.Join(lines, "; "))
	}
	return readyCondition(metav1.ConditionUnknown, fleet.ReasonOffline,
		fmt.Sprintf("%d of %d clusters do not report: %s", len(g.nonReady), g.clusters, strings.Join(g.names(), ", ")))
}

// line speaks of the deployments in one state; its example is from the first
// cluster that has one.
func (g *group) line(state code, n int) string {
	for _, c := range g.nonReady {
		if keys := c.counter.sorted[state]; len(keys) > 0 {
			r := c.counter.resource(keys[0])
			r.Name = c.label
			return line(state.name(), n, NounCluster, r)
		}
	}
	return fmt.Sprintf("%s(%d)", state.name(), n)
}
