package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// StateOf names the state of a deployment from its spec and its agent's last
// word. It knows nothing of a silent cluster.
func StateOf(bd *fleet.BundleDeployment) fleet.BundleState {
	switch {
	case bd.Status.AppliedDeploymentID != bd.Spec.DeploymentID:
		return unapplied(bd)
	case !bd.Status.Ready && failed(bd, fleet.ConditionInstalled):
		return fleet.ErrApplied
	case !bd.Status.Ready:
		return fleet.NotReady
	case staged(bd):
		return fleet.OutOfSync
	case !bd.Status.NonModified:
		return fleet.Modified
	default:
		return fleet.Ready
	}
}

func unapplied(bd *fleet.BundleDeployment) fleet.BundleState {
	if failed(bd, fleet.ConditionDeployed) {
		return fleet.ErrApplied
	}
	return fleet.WaitApplied
}

// staged tells whether newer content waits; an empty staged id means none.
func staged(bd *fleet.BundleDeployment) bool {
	return bd.Spec.StagedDeploymentID != "" && bd.Spec.StagedDeploymentID != bd.Spec.DeploymentID
}

func failed(bd *fleet.BundleDeployment, condition string) bool {
	c := fleet.FindCondition(bd.Status.Conditions, condition)
	return c != nil && c.Status == metav1.ConditionFalse
}

// MessageOf says in one line what is wrong with a deployment, from its agent's
// conditions; empty where there is nothing to say.
func MessageOf(bd *fleet.BundleDeployment) string {
	order := []string{fleet.ConditionDeployed}
	if bd.Status.AppliedDeploymentID == bd.Spec.DeploymentID {
		order = append(order, fleet.ConditionInstalled)
	}
	for _, t := range append(order, fleet.ConditionMonitored) {
		c := fleet.FindCondition(bd.Status.Conditions, t)
		if c != nil && c.Status != metav1.ConditionTrue && c.Message != "" {
			return c.Message
		}
	}
	return ""
}

// code is a state in one byte. Codes are ordered from worst to best, so they
// are ranks as well. Offline is the mildest of those that are not ready:
// silence is no failure.
type code uint8

const (
	errApplied code = iota
	waitApplied
	modified
	outOfSync
	pending
	notReady
	offline
	ready
	codes
)

// name is the state that the code stands for.
func (c code) name() fleet.BundleState {
	return [codes]fleet.BundleState{
		fleet.ErrApplied, fleet.WaitApplied, fleet.Modified, fleet.OutOfSync,
		fleet.Pending, fleet.NotReady, fleet.StateOffline, fleet.Ready,
	}[c]
}

// codeOf takes an unknown state for not ready.
func codeOf(s fleet.BundleState) code {
	for c := range codes {
		if c.name() == s {
			return c
		}
	}
	return notReady
}
