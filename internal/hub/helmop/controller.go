// Package helmop is the controller that turns HelmOps into Bundles: it fetches
// the chart, packs it into one Bundle of the HelmOp's name, and looks for newer
// versions where the HelmOp asks for that. It writes status.version and all
// conditions of HelmOps but Ready.
package helmop

import (
	"context"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/charts"
	"github.com/flotilla-sh/flotilla/internal/hub/access"
	"github.com/flotilla-sh/flotilla/internal/hub/bundle/packing"
	"github.com/flotilla-sh/flotilla/internal/hub/bundle/write"
	"github.com/flotilla-sh/flotilla/internal/source/chart"
	"github.com/flotilla-sh/flotilla/internal/source/chartref"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Controller packs HelmOps.
type Controller struct {
	// Access reads Secrets.
	Access  *access.Reader
	Bundles *write.Writer
	Charts  *chart.Fetcher
	Events  events.EventRecorder
	Clock   clock.PassiveClock

	looks looks
}

// Setup adds the controller to a manager.
func (c *Controller) Setup(mgr ctrl.Manager) error {
	return (&packing.Frame[*fleet.HelmOp]{
		Kind: c, Name: "helmop", Resource: "helmops",
		New:     func() *fleet.HelmOp { return &fleet.HelmOp{} },
		List:    func() client.ObjectList { return &fleet.HelmOpList{} },
		Owner:   owner,
		Changes: predicate.GenerationChangedPredicate{},
		Bundles: c.Bundles, Clock: c.Clock,
	}).Setup(mgr)
}

// Next is how soon to look for a newer version; 0 for never.
func (c *Controller) Next(op *fleet.HelmOp) time.Duration { return c.looks.next(op, c.Clock.Now()) }

// Forget drops what is remembered of a HelmOp that is gone.
func (c *Controller) Forget(op types.NamespacedName) { c.looks.forget(op) }

// Pack brings the chart and writes the Bundle.
func (c *Controller) Pack(ctx context.Context, op *fleet.HelmOp) error {
	if err := check(op); err != nil {
		return err
	}
	have, err := c.Bundles.Have(ctx, owner(op), op.Name)
	if err != nil {
		return err
	}
	draft := draftOf(op)
	in := charts.Input{Draft: draft}
	if have != nil {
		in.Have, in.Stored = have.Bundle.Spec.Charts, have.Files
		in.Refresh = c.looks.refresh(op, have.Bundle, c.Clock.Now())
	} else {
		in.Refresh = c.looks.refresh(op, nil, c.Clock.Now())
	}
	err = c.bring(ctx, op, in)
	c.looks.note(op, in.Refresh, err, c.Clock.Now())
	c.reportPoll(op, err)
	if err != nil {
		return err
	}
	version := versionOf(&draft.Spec)
	if version != op.Status.Version && op.Status.Version != "" {
		c.Events.Eventf(op, nil, "Normal", "GotNewChartVersion", "Poll", "the chart goes from %s to %s", op.Status.Version, version)
	}
	want := bundleOf(op, draft)
	if want.Spec.OCIRegistrySecret == "" {
		if want.Spec.OCIRegistrySecret, err = c.Bundles.Registry(ctx, op.Namespace); err != nil {
			return err
		}
	}
	if err := c.Bundles.Write(ctx, owner(op), want, draft.Files); err != nil {
		return err
	}
	op.Status.Version = version
	return nil
}

func owner(op *fleet.HelmOp) write.Owner {
	return write.Owner{Kind: "HelmOp", Namespace: op.Namespace, Name: op.Name, Label: fleet.HelmOpLabel}
}

// bring fetches the chart, or takes what the bundle has of it.
func (c *Controller) bring(ctx context.Context, op *fleet.HelmOp, in charts.Input) error {
	var err error
	if in.Access, err = c.Access.HelmOpCharts(ctx, op); err != nil {
		return err
	}
	packer := charts.NewPacker(c.Charts)
	defer packer.Close()
	return packer.Fill(ctx, in)
}

// draftOf is the bundle that a HelmOp describes, without its chart.
func draftOf(op *fleet.HelmOp) *bundle.Draft {
	spec := *op.Spec.BundleSpec.DeepCopy()
	// What controllers write, and what needs files, means nothing here.
	spec.Resources, spec.ContentsID, spec.HelmOpOptions, spec.ValuesHash = nil, "", nil, ""
	spec.Charts, spec.TargetRestrictions, spec.Overwrites = nil, nil, nil
	spec.Kustomize, spec.YAML, spec.Helm.ValuesFiles = nil, nil, nil
	if len(spec.Targets) == 0 {
		spec.Targets = []fleet.BundleTarget{{Name: "default", ClusterGroup: "default"}}
	}
	for i := range spec.Targets {
		t := &spec.Targets[i]
		if t.Name == "" {
			t.Name = fmt.Sprintf("target%03d", i)
		}
		if t.Kustomize, t.YAML = nil, nil; t.Helm != nil {
			t.Helm.ValuesFiles = nil
		}
	}
	return &bundle.Draft{Name: op.Name, Path: "spec", Spec: spec}
}

func bundleOf(op *fleet.HelmOp, draft *bundle.Draft) *fleet.Bundle {
	b := &fleet.Bundle{Spec: draft.Spec}
	b.Namespace, b.Name = op.Namespace, op.Name
	b.Labels = maps.Clone(op.Spec.Labels)
	return b
}

// versionOf is the version of the HelmOp's own chart, among those of targets and
// of dependencies.
func versionOf(spec *fleet.BundleSpec) string {
	dir := chartref.Dir(spec.Helm.Repo, spec.Helm.Chart, spec.Helm.Version)
	for _, c := range spec.Charts {
		if c.Dir == dir {
			return c.Version
		}
	}
	return ""
}
