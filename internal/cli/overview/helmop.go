package overview

import (
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// HelmOp is one line of the list of HelmOps.
type HelmOp struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Version is that of the chart that its Bundle is of.
	Version string `json:"version"`
	// Ready and Wanted count deployments.
	Ready  int    `json:"ready"`
	Wanted int    `json:"wanted"`
	State  string `json:"state"`
}

func (m *maker) helmOp(op *fleet.HelmOp) {
	m.out.HelmOps = append(m.out.HelmOps, HelmOp{
		Namespace: op.Namespace, Name: op.Name, Version: op.Status.Version,
		Ready: op.Status.Summary.Ready, Wanted: op.Status.Summary.DesiredReady,
		State: stateOf(op.Status.Conditions),
	})
	m.origin(Problem{Kind: "HelmOp", Namespace: op.Namespace, Name: op.Name}, &op.Status.StatusBase, op.Status.Version != "")
	if op.DeletionTimestamp != nil {
		m.note(Problem{Kind: "HelmOp", Namespace: op.Namespace, Name: op.Name}, stateRemoving, "it is being deleted, and waits until its bundle is gone")
	}
}

// origin adds what is wrong with an object that bundles come from. made tells
// whether there are any.
func (m *maker) origin(at Problem, s *fleet.StatusBase, made bool) {
	found := m.blocked(at, s.Conditions)
	ready := fleet.FindCondition(s.Conditions, fleet.ConditionReady)
	if found == 0 && waiting(ready) {
		m.problem(at, ready.Reason, ready.Message)
	}
	if ready == nil && found == 0 {
		m.problem(at, stateUnknown, "the hub has not looked at it yet: does flotilla-hub run?")
	}
	if found == 0 && made && s.Summary.DesiredReady == 0 {
		m.note(at, "NoClusters", "no cluster gets what it deploys: do its targets match the labels of a cluster?")
	}
	m.remark(at, s.Conditions)
}

// unseen adds that a bundle is on clusters which do not report, where those
// cannot be read: what the agents said of it last is no news.
func (m *maker) unseen(b *fleet.Bundle) {
	name, away, seen := b.Namespace+"/"+b.Name, b.Status.Summary.Offline, m.out.Unread == ""
	known := map[string]bool{}
	for _, c := range m.out.Clusters {
		known[c.Namespace+"/"+c.Name] = true
	}
	for _, d := range m.out.Deployments {
		if d.Bundle == name && d.State == string(fleet.StateOffline) {
			away--
		}
		seen = seen && (d.Bundle != name || known[d.Cluster])
	}
	if !seen && away > 0 {
		m.problem(Problem{Kind: "Bundle", Namespace: b.Namespace, Name: b.Name}, string(fleet.StateOffline),
			counted(away, "of its clusters does not report", "of its clusters do not report")+", and you may not read which")
	}
}
