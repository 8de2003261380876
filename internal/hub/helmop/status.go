package helmop

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/effect"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/reconcile"
	"github.com/flotilla-sh/flotilla/internal/source/chartref"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

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

// Report turns the outcome into conditions.
func (c *Controller) Report(op *fleet.HelmOp, err error) {
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
