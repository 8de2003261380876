// Package helmop is the controller that turns HelmOps into Bundles: it fetches
// the chart, packs it into one Bundle of the HelmOp's name, and looks for newer
// versions where the HelmOp asks for that. It writes status.version and all
// conditions of HelmOps but Ready.
package helmop

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/charts"
	"github.com/flotilla-sh/flotilla/internal/hub/access"
	"github.com/flotilla-sh/flotilla/internal/hub/bundle/write"
	"github.com/flotilla-sh/flotilla/internal/hub/tenancy"
	"github.com/flotilla-sh/flotilla/internal/reconcile"
	"github.com/flotilla-sh/flotilla/internal/source/chart"
	"github.com/flotilla-sh/flotilla/internal/source/chartref"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Controller packs HelmOps.
type Controller struct {
	Client client.Client
	// Live reads what a deletion depends on, past all caches.
	Live client.Reader
	// Access reads Secrets.
	Access  *access.Reader
	Bundles *write.Writer
	Charts  *chart.Fetcher
	Events  events.EventRecorder
	Clock   clock.PassiveClock

	looks    looks
	statuses reconcile.Written
}

// Setup adds the controller to a manager.
func (c *Controller) Setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("helmop").
		WithOptions(controller.Options{MaxConcurrentReconciles: 4, RateLimiter: reconcile.Backoff[ctrl.Request]()}).
		For(&fleet.HelmOp{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&fleet.Bundle{}, handler.EnqueueRequestsFromMapFunc(opOf), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&fleet.Policy{}, handler.EnqueueRequestsFromMapFunc(c.opsNear)).
		Watches(&fleet.GitRepoRestriction{}, handler.EnqueueRequestsFromMapFunc(c.opsNear)).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(c.opsNear),
			builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == fleet.OCIStorageSecret }))).
		Complete(c)
}

// opOf maps a Bundle to its HelmOp.
func opOf(_ context.Context, obj client.Object) []ctrl.Request {
	name := obj.GetLabels()[fleet.HelmOpLabel]
	if name == "" {
		return nil
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}}
}

// opsNear maps what limits a namespace to the HelmOps in it.
func (c *Controller) opsNear(ctx context.Context, obj client.Object) []ctrl.Request {
	list := &fleet.HelmOpList{}
	if err := c.Client.List(ctx, list, client.InNamespace(obj.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var out []ctrl.Request
	for i := range list.Items {
		out = append(out, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// Reconcile makes the Bundle of one HelmOp be what it says.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	op := &fleet.HelmOp{}
	if err := c.Client.Get(ctx, req.NamespacedName, op); err != nil {
		c.looks.forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !op.DeletionTimestamp.IsZero() {
		return reconcile.Result(ctx, c.finalize(ctx, op))
	}
	if controllerutil.AddFinalizer(op, fleet.Finalizer) {
		if err := c.Client.Update(ctx, op); err != nil {
			return reconcile.Result(ctx, err)
		}
	}
	patcher := c.statuses.Patcher(c.Client, op)
	err := c.pack(ctx, op)
	c.report(op, err)
	if patchErr := patcher.Status(ctx, op); patchErr != nil {
		return reconcile.Result(ctx, patchErr)
	}
	if soon := c.looks.next(op, c.Clock.Now()); err == nil && soon > 0 {
		return ctrl.Result{RequeueAfter: soon}, nil
	}
	return reconcile.Result(ctx, err)
}

// pack brings the chart and writes the Bundle.
func (c *Controller) pack(ctx context.Context, op *fleet.HelmOp) error {
	if err := tenancy.Check(ctx, c.Client, op.Namespace); err != nil {
		return err
	}
	if err := check(op); err != nil {
		return err
	}
	have, err := c.Bundles.Have(ctx, owner(op), op.Name)
	if err != nil {
		return err
	}
	draft := draftOf(op)
	err = c.bring(ctx, op, draft, have)
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
func (c *Controller) bring(ctx context.Context, op *fleet.HelmOp, draft *bundle.Draft, have *write.Have) error {
	reach, err := c.Access.HelmOpCharts(ctx, op)
	if err != nil {
		return err
	}
	in := charts.Input{Draft: draft, Access: reach, Refresh: c.looks.refresh(op, c.Clock.Now())}
	if have != nil {
		in.Have, in.Stored = have.Bundle.Spec.Charts, have.Files
	}
	packer := charts.NewPacker(c.Charts)
	defer packer.Close()
	err = packer.Fill(ctx, in)
	c.looks.note(op, in.Refresh, err, c.Clock.Now())
	return err
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
