// Package reconcile is what all controllers share: how an object's status is
// patched, and how the kind of an error becomes a condition and a requeue.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-sh/flotilla/internal/fault"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Patcher remembers an object as it was read and writes what changed since.
type Patcher struct {
	client client.Client
	base   client.Object
}

// NewPatcher remembers obj.
func NewPatcher(c client.Client, obj client.Object) *Patcher {
	return &Patcher{client: c, base: obj.DeepCopyObject().(client.Object)}
}

// Status writes the status of obj where it differs from what was read. Two
// controllers share some status objects, so the patch is refused when the
// object moved; the caller looks again.
func (p *Patcher) Status(ctx context.Context, obj client.Object) error {
	if equality.Semantic.DeepEqual(p.base, obj) {
		return nil
	}
	patch := client.MergeFromWithOptions(p.base, client.MergeFromWithOptimisticLock{})
	return client.IgnoreNotFound(p.client.Status().Patch(ctx, obj, patch))
}

// Result maps an error to what the work queue should do. Conflicts are looked
// at again without a word: they are everyday life.
func Result(ctx context.Context, err error) (ctrl.Result, error) {
	switch {
	case err == nil:
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: 20 * time.Millisecond}, nil
	case errors.Is(err, context.Canceled):
		return ctrl.Result{}, nil
	}
	switch fault.KindOf(err) {
	case fault.Stalled:
		log.FromContext(ctx).Info("stalled until the input changes", "reason", fault.ReasonOf(err, ""), "message", err.Error())
		return ctrl.Result{}, nil
	case fault.Waiting:
		return ctrl.Result{RequeueAfter: fault.AfterOf(err)}, nil
	default:
		return ctrl.Result{}, err
	}
}

// Outcome returns the condition that an error, or its absence, makes.
func Outcome(conditionType string, err error) fleet.Condition {
	if err == nil {
		return fleet.Condition{Type: conditionType, Status: metav1.ConditionTrue}
	}
	return fleet.Condition{
		Type:    conditionType,
		Status:  metav1.ConditionFalse,
		Reason:  fault.ReasonOf(err, fleet.ReasonError),
		Message: err.Error(),
	}
}

// Working is the Ready condition of something whose newest input is not worked
// in yet, so that nothing is known of it.
func Working(on string) fleet.Condition {
	return fleet.Condition{
		Type: fleet.ConditionReady, Status: metav1.ConditionUnknown, Reason: "Working", Message: "working on " + on,
	}
}

// Warnings is the condition that lists what is not as its author will have
// meant it. The list is cut where it grows long.
func Warnings(all []string) fleet.Condition {
	const most = 10
	if len(all) == 0 {
		return fleet.Condition{Type: fleet.ConditionWarnings, Status: metav1.ConditionFalse}
	}
	lines := all[:min(most, len(all))]
	if more := len(all) - len(lines); more > 0 {
		lines = append(slices.Clone(lines), fmt.Sprintf("and %d more", more))
	}
	return fleet.Condition{Type: fleet.ConditionWarnings, Status: metav1.ConditionTrue, Reason: "Warnings", Message: strings.Join(lines, "; ")}
}
