package apply

import (
	"cmp"
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

// mark is what an object says of the bundle that has it.
type mark struct{ bundle, hub string }

func markOf(o metav1.Object) mark {
	return mark{bundle: o.GetAnnotations()[fleet.BundleAnnotation], hub: o.GetAnnotations()[fleet.HubAnnotation]}
}

// of tells whether it is the mark of owner.
func (m mark) of(owner Owner) bool { return m.bundle == owner.Bundle && m.sameHub(owner) }

// sameHub tells whether the mark was made for the hub of owner. Marks that name
// no hub are older than the names of hubs.
func (m mark) sameHub(owner Owner) bool { return m.hub == "" || owner.Hub == "" || m.hub == owner.Hub }

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

// installer says what has put an object on the cluster that belongs to nobody
// who would put it back, for people.
func installer(o *metav1.PartialObjectMetadata) string {
	release := ""
	if name := o.Annotations[helmReleaseAnnotation]; name != "" {
		release = cmp.Or(o.Annotations["meta.helm.sh/release-namespace"], o.Namespace) + "/" + name
	}
	switch {
	case o.Annotations[fleet.ObjectSetIDAnnotation] != "":
		return fmt.Sprintf(" (Rancher Fleet installed it for %s)", cmp.Or(release, o.Annotations[fleet.ObjectSetIDAnnotation]))
	case release != "":
		return fmt.Sprintf(" (it is part of the Helm release %s)", release)
	case o.Annotations[lastAppliedAnnotation] != "":
		return " (kubectl apply made it)"
	}
	return ""
}

// claim is who wants an existing object, and with what right.
type claim struct {
	Owner
	// takeOwnership takes over what belongs to nobody.
	takeOwnership bool
	// abandoned is true where the bundle that the object names is on this
	// cluster, and has the object no more.
	abandoned bool
}

// judge says whether c may apply onto the live object, and if not, why.
func judge(live *metav1.PartialObjectMetadata, c claim) (verdict, string) {
	owner := markOf(live)
	switch {
	case owner.of(c.Owner):
		return ours, ""
	case owner.bundle != "" && !owner.sameHub(c.Owner):
		return refuse, fmt.Sprintf("it belongs to bundle %s of another hub (%s): remove it there first, keeping the object", owner.bundle, owner.hub)
	case owner.bundle != "" && !c.abandoned:
		return refuse, fmt.Sprintf("it belongs to bundle %s, and is taken over when that bundle drops it: remove it from one of the two", owner.bundle)
	}
	if tool := foreignOwner(live); tool != "" {
		return refuse, fmt.Sprintf("it belongs to %s: remove it there first, keeping the object", tool)
	}
	if owner.bundle != "" || c.takeOwnership || live.Annotations[HeldAnnotation] != "" || live.Annotations[CreatedAnnotation] != "" {
		return adopt, ""
	}
	return refuse, fmt.Sprintf("it exists and Flotilla did not create it%s: set helm.takeOwnership to take it over, or rename or remove one of the two", installer(live))
}

// OwnedByAnother tells whether the live object bears the mark of another bundle
// than owner.
func OwnedByAnother(live metav1.Object, owner Owner) bool {
	m := markOf(live)
	return m.bundle != "" && !m.of(owner)
}
