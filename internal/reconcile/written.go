package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/apireq"
	"github.com/flotilla-sh/flotilla/internal/fault"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// behindSoon is when to look again at an object of which the cache is behind.
	behindSoon = 300 * time.Millisecond
	// writtenMost bounds what is remembered: an object that is gone is not
	// looked at again.
	writtenMost = 4096
)

// ReasonRemoving is why a deleted object is still there.
const ReasonRemoving = "Removing"

// Written knows the last status that a controller wrote of each object. A cache
// may not have it yet. What differs from an older state is not what differs from
// the one that the API server has, and nobody would look again, as a status is
// no reason to.
type Written struct {
	once sync.Once
	last *lru.Cache
}

// Patcher remembers a copy of obj.
func (w *Written) Patcher(c client.Client, obj client.Object) *Patcher {
	return w.PatcherFrom(c, obj.DeepCopyObject().(client.Object))
}

// PatcherFrom remembers base itself, which nobody changes from now on.
func (w *Written) PatcherFrom(c client.Client, base client.Object) *Patcher {
	w.once.Do(func() { w.last = lru.New(writtenMost) })
	return &Patcher{client: c, base: base, written: w}
}

// Removing says on a deleted object what it waits for, and returns that.
func (w *Written) Removing(ctx context.Context, c client.Client, obj Conditioned, now time.Time, waiting error) error {
	patcher := w.Patcher(c, obj)
	fleet.SetCondition(obj.StatusConditions(), fleet.Condition{
		Type: fleet.ConditionReconciling, Status: metav1.ConditionTrue, Reason: ReasonRemoving, Message: waiting.Error(),
	}, now)
	if err := patcher.Status(ctx, obj); err != nil {
		return err
	}
	return waiting
}

// note takes in how a write of obj ended. Of one whose answer was lost nobody
// knows whether it was done.
func (w *Written) note(obj client.Object, err error) {
	switch {
	case err == nil:
		w.last.Add(obj.GetUID(), obj.GetResourceVersion())
	case !apireq.Refused(err):
		w.last.Add(obj.GetUID(), "")
	}
}

// behind is an error where obj was read before the last write was seen.
func (w *Written) behind(obj client.Object) error {
	version := w.version(obj)
	if version == "" {
		return nil
	}
	if order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), version); err == nil && order < 0 {
		return fault.Wait(behindSoon, "Behind", fmt.Errorf("the cache does not have the last status of %s yet", client.ObjectKeyFromObject(obj)))
	}
	return nil
}

// open tells whether nobody knows if the last write of obj was done.
func (w *Written) open(obj client.Object) bool {
	_, known := w.last.Get(obj.GetUID())
	return known && w.version(obj) == ""
}

// version is what the last write of obj made; empty where that is not known.
func (w *Written) version(obj client.Object) string {
	last, _ := w.last.Get(obj.GetUID())
	version, _ := last.(string)
	return version
}

// confirm returns nothing where base, which needs no change, is what the API
// server has, as far as this controller has written it.
func (p *Patcher) confirm(ctx context.Context) error {
	if p.written.open(p.base) {
		if err := p.ask(ctx); err != nil {
			return err
		}
	}
	p.written.last.Remove(p.base.GetUID())
	return nil
}

// ask lets the API server say whether base is what it has: it refuses a patch of
// another version, and writes nothing where one changes nothing.
func (p *Patcher) ask(ctx context.Context) error {
	data, err := json.Marshal(map[string]any{"metadata": p.precondition(p.base, p.base.GetResourceVersion())})
	if err != nil {
		return fmt.Errorf("encode the status: %w", err)
	}
	_, err = p.write(ctx, p.base, data)
	return client.IgnoreNotFound(err)
}
