package apply

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// HeldAnnotation names on an object the bundle that it has left; the
	// object is kept, and any bundle may take it.
	HeldAnnotation = "flotilla.sh/held"
	// CreatedAnnotation is on a namespace that was made because a bundle
	// deploys into it; any bundle may take it.
	CreatedAnnotation = "flotilla.sh/created-for"

	// agentManager is the field manager of what is done for no bundle.
	agentManager = "flotilla-agent"
)

// verdict is what the owner of an existing object allows.
type verdict int

const (
	// ours: the bundle has it already.
	ours verdict = iota
	// adopt: the bundle may take it over.
	adopt
	// refuse: somebody else has it.
	refuse
)

// foreignOwner returns which other GitOps tool has marked the object as its own. app.kubernetes.io/instance is no such mark: everybody sets it.
func foreignOwner(o *metav1.PartialObjectMetadata) string {
	switch {
	case o.Labels["kustomize.toolkit.fluxcd.io/name"] != "":
		return fmt.Sprintf("Flux Kustomization %s/%s",
			o.Labels["kustomize.toolkit.fluxcd.io/namespace"], o.Labels["kustomize.toolkit.fluxcd.io/name"])
	case o.Labels["helm.toolkit.fluxcd.io/name"] != "":
		return fmt.Sprintf("Flux HelmRelease %s/%s",
			o.Labels["helm.toolkit.fluxcd.io/namespace"], o.Labels["helm.toolkit.fluxcd.io/name"])
	case o.Annotations["argocd.argoproj.io/tracking-id"] != "":
		return fmt.Sprintf("Argo CD (tracking-id %s)", o.Annotations["argocd.argoproj.io/tracking-id"])
	}
	return ""
}

// judge says whether bundle may apply onto the live object, and if not, why.
func judge(live *metav1.PartialObjectMetadata, bundle string, takeOwnership bool) (verdict, string) {
	owner := live.Annotations[fleet.BundleAnnotation]
	if owner == bundle {
		return ours, ""
	}
	if owner != "" {
		return refuse, fmt.Sprintf("it belongs to bundle %s: remove it from one of the two", owner)
	}
	if tool := foreignOwner(live); tool != "" {
		return refuse, fmt.Sprintf("it belongs to %s: remove it there first, keeping the object", tool)
	}
	if takeOwnership || live.Annotations[HeldAnnotation] != "" || live.Annotations[CreatedAnnotation] != "" {
		return adopt, ""
	}
	return refuse, "it exists and Flotilla did not create it: set helm.takeOwnership to take it over, or rename or remove one of the two"
}
