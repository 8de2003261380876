package apply

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	ssautil "github.com/fluxcd/pkg/ssa/utils"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// refused is an object that its cluster would refuse.
type refused struct {
	// cause is what the server said, err the same for people.
	cause, err error
}

// answered tells whether the server has judged the object, or a webhook was to
// do it: what else went wrong tells nothing about the object, nor about what it
// would take to have it accepted.
func (why refused) answered() bool {
	status, ok := statusOf(why.cause)
	if !ok {
		return false
	}
	return status.Code >= 400 && status.Code < 500 && status.Code != http.StatusTooManyRequests || status.Code == http.StatusInternalServerError
}

// aboutShape tells whether the object itself is at fault, by its kind's own
// rules: fields are named, or it does not fit its kind at all, which servers
// answer without a reason.
func (why refused) aboutShape() bool {
	status, ok := statusOf(why.cause)
	if !ok {
		return false
	}
	if status.Code == http.StatusInternalServerError {
		return status.Reason == metav1.StatusReasonUnknown
	}
	return apierrors.IsInvalid(why.cause) && status.Details != nil &&
		slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool { return c.Field != "" })
}

// whatever tells whether an item is refused whatever else is done to the
// cluster.
func (why refused) whatever(it item) bool {
	return BuiltIn(it.ref) && why.aboutShape() && fault.ReasonOf(why.err, "") != ReasonImmutable
}

func statusOf(err error) (metav1.Status, bool) {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return metav1.Status{}, false
	}
	return status.ErrStatus, true
}

// decides tells whether writing d may change why another item is refused.
func decides(d, it item, why refused) bool {
	if ssautil.IsCRD(d.obj) {
		_, found := definedKinds([]*unstructured.Unstructured{d.obj})[it.ref.GVK()]
		return found
	}
	if why.aboutShape() && BuiltIn(it.ref) {
		return false
	}
	if d.ref.Group == "admissionregistration.k8s.io" {
		return true
	}
	if why.aboutShape() {
		return false
	}
	isPod := it.ref.Group == "" && it.ref.Kind == "Pod"
	switch d.ref.Group + "/" + d.ref.Kind {
	case "/Namespace":
		return it.ref.Namespace == d.ref.Name
	case "/ResourceQuota", "/LimitRange":
		return it.ref.Namespace == d.ref.Namespace
	case "/ServiceAccount":
		return isPod && it.ref.Namespace == d.ref.Namespace
	case "scheduling.k8s.io/PriorityClass", "node.k8s.io/RuntimeClass", "storage.k8s.io/CSIDriver":
		return isPod
	case "storage.k8s.io/StorageClass":
		return it.ref.Kind == "PersistentVolumeClaim"
	}
	if d.ref.Group == "rbac.authorization.k8s.io" {
		return it.ref.Group == d.ref.Group // nobody grants what he has not
	}
	return isPolicy(d.ref)
}

// isPolicy tells whether an object tells an admission webhook what to allow.
func isPolicy(ref Ref) bool {
	for _, engine := range []string{"kyverno.io", "gatekeeper.sh", "kubewarden.io"} {
		if ref.Group == engine || strings.HasSuffix(ref.Group, "."+engine) {
			return true
		}
	}
	return false
}

// BuiltIn tells whether the API server itself has the rules of a kind.
func BuiltIn(ref Ref) bool {
	switch ref.Group {
	case "", "apps", "autoscaling", "batch", "policy", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io",
		"authentication.k8s.io", "authorization.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io",
		"events.k8s.io", "flowcontrol.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io",
		"resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io":
		return true
	}
	return false
}

// isServer tells whether an object makes programs run or be found.
func isServer(ref Ref) bool {
	switch ref.Group + "/" + ref.Kind {
	case "apps/Deployment", "apps/StatefulSet", "apps/DaemonSet", "/Pod", "/Service":
		return true
	}
	return false
}

// bringsJudge tells whether the plan has the webhook that judges or converts
// objects like this one: what serves it may be brought by the plan, too.
func (p *Plan) bringsJudge(it item) bool {
	return slices.ContainsFunc(p.items, func(d item) bool {
		if ssautil.IsCRD(d.obj) {
			strategy, _, _ := unstructured.NestedString(d.obj.Object, "spec", "conversion", "strategy")
			_, found := definedKinds([]*unstructured.Unstructured{d.obj})[it.ref.GVK()]
			return found && strategy == "Webhook"
		}
		return d.ref.Group == "admissionregistration.k8s.io" && calledFor(d.obj, it.ref.Group)
	})
}

// calledFor tells whether a webhook configuration is about objects of a group.
func calledFor(config *unstructured.Unstructured, group string) bool {
	webhooks, _, _ := unstructured.NestedSlice(config.Object, "webhooks")
	for _, w := range webhooks {
		webhook, _ := w.(map[string]any)
		rules, _, _ := unstructured.NestedSlice(webhook, "rules")
		for _, r := range rules {
			rule, _ := r.(map[string]any)
			groups, _, _ := unstructured.NestedStringSlice(rule, "apiGroups")
			if slices.Contains(groups, group) || slices.Contains(groups, "*") {
				return true
			}
		}
	}
	return false
}
