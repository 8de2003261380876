package agent

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-sh/flotilla/internal/agent/drift"
	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/observe"
)

// watching is what the deploy controller knows of watching: the tracker, the
// watches and the findings behind one door.
type watching struct {
	tracker     *observe.Tracker
	watcher     *observe.Watcher
	drift       *drift.Controller
	deployments drift.Deployments
}

// Begin says that a deployment is about to be applied.
func (w *watching) Begin(owner apply.Owner) { w.tracker.Begin(owner) }

// Applied makes an inventory the new baseline, and looks at once at what has a
// state, so that the first report can tell it.
func (w *watching) Applied(ctx context.Context, owner apply.Owner, inventory apply.Inventory, written map[apply.Ref]bool) {
	// In this order a look that is under way cannot leave what it found of the
	// baseline before.
	w.tracker.Track(owner, inventory)
	w.drift.Renew(owner.Label, inventory, written)
	w.watcher.Sync(ctx)
	if written != nil {
		w.drift.Look(ctx, w.deployments, owner.Label)
	}
}

// Dressed says on which namespace a deployment has set something.
func (w *watching) Dressed(owner apply.Owner, namespace string) { w.tracker.Dress(owner, namespace) }

// Await asks to be told of any change of objects that are not tracked.
func (w *watching) Await(ctx context.Context, owner apply.Owner, refs []apply.Ref) {
	w.tracker.Await(owner, refs)
	w.watcher.Sync(ctx)
}

// Read reads tracked objects, whatever is known of them.
func (w *watching) Read(ctx context.Context, label string, refs []apply.Ref) error {
	w.tracker.Doubt(label, refs)
	err := w.drift.Read(ctx, w.deployments, label)
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// Gone drops a deployment.
func (w *watching) Gone(ctx context.Context, label string) {
	w.tracker.Forget(label)
	w.drift.Forget(label)
	w.watcher.Sync(ctx)
}

// Live returns what is known of an object without reading it.
func (w *watching) Live(label string, ref apply.Ref) apply.Live {
	live := w.tracker.Live(label, ref)
	live.Changed = live.Changed || w.drift.Drifted(label, ref)
	return live
}

// Findings returns what is known of a deployment's objects.
func (w *watching) Findings(label string) map[apply.Ref]observe.Finding {
	return w.drift.Findings(label)
}
