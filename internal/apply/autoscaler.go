package apply

import (
	"context"
	"strings"

	"github.com/fluxcd/pkg/ssa"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// ScaledBy returns who has written spec.replicas through the scale subresource,
// where nobody has written it otherwise since: autoscalers do that, and people
// with `kubectl scale` too.
func ScaledBy(entries []metav1.ManagedFieldsEntry) string {
	by := ""
	for _, e := range entries {
		if e.Subresource != "scale" || e.FieldsV1 == nil || isAutoscaler(by) {
			continue
		}
		set, err := ssa.FieldsToSet(*e.FieldsV1)
		if err == nil && set.Has(fieldpath.MakePathOrDie("spec", "replicas")) {
			by = e.Manager
		}
	}
	return by
}

// isAutoscaler tells whether a program is an autoscaler by its name. That of
// Kubernetes shares its name with all other controllers.
func isAutoscaler(manager string) bool {
	return strings.HasPrefix(manager, "keda") || strings.Contains(manager, "autoscaler")
}

// Autoscaled tells whether the replicas of an object are an autoscaler's, which
// it needs a writer for: one that is an autoscaler by name, or a
// HorizontalPodAutoscaler for the object. Who may not look for one leaves the
// replicas as they are.
func (c *Client) Autoscaled(ctx context.Context, ref Ref, by string) (bool, error) {
	if by == "" || isAutoscaler(by) {
		return by != "", nil
	}
	resource := schema.GroupVersionResource{Group: "autoscaling", Version: "v1", Resource: "horizontalpodautoscalers"}
	all, err := c.Objects.Resource(resource).Namespace(ref.Namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	switch {
	case apierrors.IsForbidden(err):
		return true, nil
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, err
	}
	for i := range all.Items {
		if scales(&all.Items[i], ref) {
			return true, nil
		}
	}
	return false, nil
}

// scales tells whether a HorizontalPodAutoscaler is for an object.
func scales(autoscaler *unstructured.Unstructured, ref Ref) bool {
	target, _, _ := unstructured.NestedStringMap(autoscaler.Object, "spec", "scaleTargetRef")
	group := schema.FromAPIVersionAndKind(target["apiVersion"], target["kind"]).Group
	return target["kind"] == ref.Kind && target["name"] == ref.Name && (group == ref.Group || target["apiVersion"] == "")
}

// ceding returns an item without the number of replicas where that is an
// autoscaler's.
func (r *run) ceding(ctx context.Context, it item) (item, error) {
	by := r.plan.deployment.live(it.ref).ScaledBy
	if _, set, _ := unstructured.NestedFieldNoCopy(it.obj.Object, "spec", "replicas"); by == "" || !set {
		return it, nil
	}
	autoscaled, err := r.engine.client.Autoscaled(ctx, it.ref, by)
	if err != nil || !autoscaled {
		return it, err
	}
	it.obj = it.obj.DeepCopy()
	unstructured.RemoveNestedField(it.obj.Object, "spec", "replicas")
	return it, nil
}
