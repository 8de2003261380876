package helmop

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/flotilla-sh/flotilla/internal/effect"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/hub/removal"
	"github.com/flotilla-sh/flotilla/internal/reconcile"
	"github.com/flotilla-sh/flotilla/internal/source/chartref"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// bundleGone is how often a deleted HelmOp looks for its bundle.
const bundleGone = 5 * time.Second

// check refuses what names no chart elsewhere.
func check(op *fleet.HelmOp) error {
	helm := op.Spec.Helm
	if helm == nil || helm.Repo == "" && helm.Chart == "" {
		return invalid(errors.New("spec.helm names no chart: set repo and chart, repo to oci://…, or chart to the URL of an archive"))
	}
	ref, err := chartref.Parse(helm.Repo, helm.Chart, helm.Version)
	if err != nil {
		return invalid(fmt.Errorf("spec.helm: %w", err))
	}
	if ref.Kind == chartref.Local {
		return invalid(fmt.Errorf("spec.helm.chart is %q, a path, and a HelmOp has no files: give a URL, or set repo", helm.Chart))
	}
	return nil
}

func invalid(err error) error { return fault.Stall("InvalidHelmOp", err) }

// report turns the outcome into conditions.
func (c *Controller) report(op *fleet.HelmOp, err error) {
	conditions, now := &op.Status.Conditions, c.Clock.Now()
	fleet.SetCondition(conditions, effect.Condition(effect.OfBundle(&op.Spec.BundleSpec)), now)
	accepted := reconcile.Outcome(fleet.ConditionAccepted, err)
	if fleet.SetCondition(conditions, accepted, now) && err != nil {
		c.Events.Eventf(op, nil, "Warning", accepted.Reason, "Pack", "%s", err)
	}
}

// reportPoll writes how the last look for a newer version went. Its time is
// written when that changes or a version is found, so that the status is still.
func (c *Controller) reportPoll(op *fleet.HelmOp, err error) {
	if interval(op) <= 0 || exact(op) {
		fleet.RemoveCondition(&op.Status.Conditions, fleet.ConditionPolled)
		return
	}
	if fleet.SetCondition(&op.Status.Conditions, reconcile.Outcome(fleet.ConditionPolled, err), c.Clock.Now()) {
		op.Status.LastPollingTime = metav1.NewTime(c.Clock.Now())
		if err != nil {
			c.Events.Eventf(op, nil, "Warning", "FailedToGetNewChartVersion", "Poll", "%s", err)
		}
	}
}

// finalize deletes the Bundle of a HelmOp that was deleted by itself, and waits
// for it. Where its namespace or kind goes, nothing is removed.
func (c *Controller) finalize(ctx context.Context, op *fleet.HelmOp) error {
	if !controllerutil.ContainsFinalizer(op, fleet.Finalizer) {
		return nil
	}
	deliberate, err := removal.Deliberate(ctx, c.Live, op, "helmops")
	if err != nil {
		return err
	}
	if deliberate {
		left, err := c.Bundles.But(ctx, owner(op), nil)
		if err != nil {
			return err
		}
		if len(left) > 0 {
			if err := c.Bundles.Delete(ctx, left); err != nil {
				return err
			}
			return fault.Wait(bundleGone, "Removing", errors.New("waiting until the bundle is removed from its clusters"))
		}
	}
	controllerutil.RemoveFinalizer(op, fleet.Finalizer)
	return client.IgnoreNotFound(c.Client.Update(ctx, op))
}
