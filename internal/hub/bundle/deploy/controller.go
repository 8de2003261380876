// Package deploy is the controller that turns a Bundle into one
// BundleDeployment for each of its clusters: it gathers, lets the pipeline
// decide, and writes the difference. It is the only writer of deployment
// specs, rendered content, removal marks and their finalizers. Of a Bundle it
// writes what is known of the render, and takes back Ready, which the roll-up
// alone gives, in the write that observes a new generation.
package deploy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/flotilla-sh/flotilla/internal/content/kube"
	"github.com/flotilla-sh/flotilla/internal/deployment"
	"github.com/flotilla-sh/flotilla/internal/effect"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/hub/bundle/sources"
	"github.com/flotilla-sh/flotilla/internal/hub/capabilities"
	"github.com/flotilla-sh/flotilla/internal/hub/follow"
	"github.com/flotilla-sh/flotilla/internal/hub/registries"
	"github.com/flotilla-sh/flotilla/internal/hub/removal"
	"github.com/flotilla-sh/flotilla/internal/hub/tenancy"
	"github.com/flotilla-sh/flotilla/internal/pipeline"
	"github.com/flotilla-sh/flotilla/internal/reconcile"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Reasons of removal marks.
const (
	reasonBundleDeleted = "the bundle was deleted"
	reasonNotTargeted   = "the bundle does not target this cluster any more"
)

// deploymentsGone is how often a deleted bundle looks for its deployments.
const deploymentsGone = 10 * time.Second

// Controller deploys.
type Controller struct {
	Client client.Client
	// Live reads past all caches what a removal depends on, and Secrets.
	Live   client.Reader
	Stages *pipeline.Stages
	Store  *kube.Store
	// Sources are the files of Bundles.
	Sources *sources.Sources
	// Registries have the content of bundles that ask for one.
	Registries *registries.Registries
	// Capabilities is what agents reported of their clusters.
	Capabilities *capabilities.Reader
	Events       events.EventRecorder
	Clock        clock.PassiveClock

	wrote    writes
	follower follow.Follower
	statuses reconcile.Written
}

// Reconcile makes the deployments of one Bundle be what it wants.
func (c *Controller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	bundle := &fleet.Bundle{}
	err := c.Client.Get(ctx, req.NamespacedName, bundle)
	if apierrors.IsNotFound(err) {
		c.follower.Follow(req.NamespacedName, nil)
		bundle.Namespace, bundle.Name = req.Namespace, req.Name
		return reconcile.Result(ctx, c.releaseDeleted(ctx, bundle))
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if !bundle.DeletionTimestamp.IsZero() {
		c.follower.Follow(req.NamespacedName, nil)
		return reconcile.Result(ctx, c.finalize(ctx, bundle))
	}
	if c.wrote.ahead(ctx, c.Client, req.NamespacedName, c.Clock.Now()) {
		return ctrl.Result{RequeueAfter: cacheSoon}, nil
	}
	if controllerutil.AddFinalizer(bundle, fleet.Finalizer) {
		if err := c.Client.Update(ctx, bundle); err != nil {
			return reconcile.Result(ctx, err)
		}
	}
	patcher := c.statuses.Patcher(c.Client, bundle)
	err = c.deploy(ctx, bundle)
	c.report(bundle, err)
	if patchErr := patcher.Status(ctx, bundle); patchErr != nil {
		return reconcile.Result(ctx, patchErr)
	}
	return reconcile.Result(ctx, err)
}

// deploy gathers, decides and acts. Its error speaks of the whole bundle, or
// of the clusters that are held back while the others went on.
func (c *Controller) deploy(ctx context.Context, bundle *fleet.Bundle) error {
	if err := tenancy.Check(ctx, c.Client, bundle.Namespace); err != nil {
		return err
	}
	if why := effect.HoldsBundle(bundle); why != "" {
		return fault.Stall("RancherFleetAgent", errors.New(why))
	}
	facts, err := c.gather(ctx, bundle)
	if err != nil {
		return err
	}
	outcomes, err := c.Stages.Run(ctx, facts.input)
	if err != nil {
		return err
	}
	plan := deployment.Decide(facts.decision(bundle, outcomes))
	if err := c.confirm(ctx, bundle, &plan); err != nil {
		return err
	}
	err = c.act(ctx, plan)
	c.wrote.note(client.ObjectKeyFromObject(bundle), &plan, c.Clock.Now())
	if err != nil {
		return err
	}
	// Roll-ups count what the caches have: the generation is observed once they
	// have all of it, or what ran before would be called Ready.
	if err := c.wrote.settle(ctx, c.Client, client.ObjectKeyFromObject(bundle)); err != nil {
		return err
	}
	if plan.Unreported {
		c.takeBack(bundle)
	}
	bundle.Status.ObservedGeneration = bundle.Generation
	bundle.Status.ResourcesSHA256Sum = facts.sourceDigest
	if warnings, rendered := pipeline.Warnings(outcomes); rendered {
		fleet.SetCondition(&bundle.Status.Conditions, reconcile.Warnings(warnings), c.Clock.Now())
	}
	count, held := pipeline.Errors(outcomes)
	bundle.Status.HeldBack = count
	return held
}

// takeBack ends that a bundle is called Ready for what ran before. The roll-up
// alone calls it Ready, and finds out a moment later; until then the newest
// generation would stand beside the word on the one before, and `kubectl wait`
// looks at both.
func (c *Controller) takeBack(bundle *fleet.Bundle) {
	if fleet.IsConditionTrue(bundle.Status.Conditions, fleet.ConditionReady) {
		fleet.SetCondition(&bundle.Status.Conditions, reconcile.Working("its newest generation"), c.Clock.Now())
	}
}

// decision is the input of the deployment plan.
func (f *facts) decision(bundle *fleet.Bundle, outcomes []pipeline.Outcome) deployment.Input {
	in := deployment.Input{
		Bundle:          bundle.Name,
		BundleNamespace: bundle.Namespace,
		Labels:          maps.Clone(bundle.Labels),
		DependsOn:       bundle.Spec.DependsOn,
		Existing:        f.existing,
		Known:           f.known,
		RemovalReason:   reasonNotTargeted,
	}
	for i := range outcomes {
		desired := outcomes[i].Desired
		desired.Content.Registry = f.at.Name()
		in.Desired = append(in.Desired, desired)
	}
	return in
}

// report turns the outcome into conditions.
func (c *Controller) report(bundle *fleet.Bundle, err error) {
	now := c.Clock.Now()
	changed := fleet.SetCondition(&bundle.Status.Conditions, reconcile.Outcome(fleet.ConditionRendered, err), now)
	fleet.SetCondition(&bundle.Status.Conditions, effect.Condition(effect.OfBundle(&bundle.Spec)), now)
	if changed && err != nil {
		c.Events.Eventf(bundle, nil, "Warning", fault.ReasonOf(err, fleet.ReasonError), "Deploy", "%s", err)
	}
}

// finalize removes a Bundle that was deleted by itself from its clusters, and
// waits for their agents. Where its namespace or its kind goes, nothing is
// removed from any cluster.
func (c *Controller) finalize(ctx context.Context, bundle *fleet.Bundle) error {
	if !fleet.IsHeld(bundle) {
		return nil
	}
	deliberate, err := removal.Deliberate(ctx, c.Live, bundle, "bundles")
	if err != nil {
		return err
	}
	if deliberate {
		left, err := c.removeAll(ctx, bundle)
		if err != nil {
			return err
		}
		if len(left) > 0 {
			return c.waitFor(ctx, bundle, left)
		}
	}
	fleet.Release(bundle)
	return client.IgnoreNotFound(c.Client.Update(ctx, bundle))
}

// waitFor says on a deleted Bundle which clusters it waits for.
func (c *Controller) waitFor(ctx context.Context, bundle *fleet.Bundle, clusters []string) error {
	const most = 5
	names := strings.Join(clusters[:min(most, len(clusters))], ", ")
	if more := len(clusters) - most; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	waiting := fmt.Errorf("waiting until these clusters have removed it: %s", names)
	return c.statuses.Removing(ctx, c.Client, bundle, c.Clock.Now(), fault.Wait(deploymentsGone, reconcile.ReasonRemoving, waiting))
}

// releaseDeleted lets the deployments of a Bundle that is gone go, where they
// are deleted themselves: with their kind or their namespace. That takes
// nothing off a cluster. The others are kept: the Bundle may only be lost.
func (c *Controller) releaseDeleted(ctx context.Context, bundle *fleet.Bundle) error {
	existing, err := c.existing(ctx, bundle)
	if err != nil {
		return err
	}
	for i := range existing {
		if existing[i].DeletionTimestamp.IsZero() {
			continue
		}
		if err := c.release(ctx, existing[i].DeepCopy()); err != nil {
			return err
		}
	}
	return nil
}

// removeAll marks all deployments of a bundle and returns the clusters whose
// agents have not removed it yet.
func (c *Controller) removeAll(ctx context.Context, bundle *fleet.Bundle) (left []string, err error) {
	existing, err := c.existingLive(ctx, bundle)
	if err != nil {
		return nil, err
	}
	known, err := c.knownClusters(ctx)
	if err != nil {
		return nil, err
	}
	plan := deployment.Decide(deployment.Input{
		Bundle: bundle.Name, BundleNamespace: bundle.Namespace,
		Existing: existing, Known: known, RemovalReason: reasonBundleDeleted,
	})
	if err := c.confirmClusters(ctx, &plan, noneWanted); err != nil {
		return nil, err
	}
	if err := c.act(ctx, plan); err != nil {
		return nil, err
	}
	return plan.Removing, nil
}
