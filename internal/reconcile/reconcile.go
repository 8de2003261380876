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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-sh/flotilla/internal/fault"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Backoff is how a work queue puts off what fails: from time to time for
// longer, up to some minutes, and never in step with others.
func Backoff[T comparable]() workqueue.TypedRateLimiter[T] {
	return jittered[T]{workqueue.NewTypedItemExponentialFailureRateLimiter[T](backoffMin, backoffMax)}
}

const (
	backoffMin = 50 * time.Millisecond
	backoffMax = 5 * time.Minute
)

type jittered[T comparable] struct {
	workqueue.TypedRateLimiter[T]
}

// When returns how long to wait.
func (j jittered[T]) When(item T) time.Duration {
	return wait.Jitter(j.TypedRateLimiter.When(item), 0.5)
}

// Result maps an error to what the work queue should do. Conflicts are looked
// at again without a word: they are everyday life. They back off like all else:
// while a cache is behind, each attempt meets the same one. Work that was
// cancelled is over where ctx is; the end of another's ctx ends nothing here.
func Result(ctx context.Context, err error) (ctrl.Result, error) {
	switch {
	case err == nil:
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err):
		return ctrl.Result{Requeue: true}, nil //nolint:staticcheck // an error would be logged and counted as one
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
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
