package deploy

import (
	"cmp"
	"reflect"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-sh/flotilla/internal/agent/state"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// older tells whether the hub's deployment is one that this cluster has left
// behind.
func older(r *state.Record, d *fleet.BundleDeployment) bool {
	return r != nil && r.UID == string(d.UID) && d.Generation < r.Generation
}

// refusal is why a deployment cannot be done as asked. What restricts a
// deployment is never passed over.
func refusal(spec *fleet.BundleDeploymentSpec) string {
	switch {
	case spec.Options.AllowedTargetNamespaceSelector != nil:
		return "allowedTargetNamespaceSelector is set, and this agent cannot check it yet: nothing is deployed"
	case spec.HelmChartOptions != nil:
		return "the chart is in a repository that this agent cannot read yet"
	case spec.Content == nil && spec.Removal == nil && spec.DeploymentID != "":
		return "the deployment names no content: it was not written by a Flotilla hub"
	}
	return ""
}

// hold is why the hub wants nothing changed.
func hold(spec *fleet.BundleDeploymentSpec) string {
	switch {
	case spec.Paused:
		return "paused"
	case spec.OffSchedule:
		return "outside of its schedule"
	case spec.WaitingForValues:
		return "waiting for its values"
	case spec.DeploymentID == "":
		return "nothing is promoted yet"
	}
	return ""
}

func correct(d *fleet.BundleDeployment) *fleet.CorrectDrift {
	return cmp.Or(d.Spec.CorrectDrift, d.Spec.Options.CorrectDrift)
}

// noted tells whether the record holds what the hub wants.
func noted(r *state.Record, d *fleet.BundleDeployment) bool {
	return r.Generation == d.Generation && r.UID == string(d.UID) && reflect.DeepEqual(r.CorrectDrift, correct(d))
}

// bundleOf returns the name and namespace of a deployment's bundle.
func bundleOf(d *fleet.BundleDeployment) (name, namespace string) {
	return cmp.Or(d.Labels[fleet.BundleLabel], d.Name), cmp.Or(d.Labels[fleet.BundleNamespaceLabel], d.Namespace)
}

// lean returns the part of a deployment that the agent keeps.
func lean(bd *fleet.BundleDeployment) *fleet.BundleDeployment {
	out := &fleet.BundleDeployment{Spec: bd.Spec}
	out.Name, out.Namespace, out.UID = bd.Name, bd.Namespace, types.UID(bd.UID)
	out.ResourceVersion, out.Generation = bd.ResourceVersion, bd.Generation
	out.DeletionTimestamp, out.Labels = bd.DeletionTimestamp, bd.Labels
	return out
}
