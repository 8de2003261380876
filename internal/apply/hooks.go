package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/pkg/ssa"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/hook"
)

// RunAnnotation names on a hook's object the run that it was made for, so that
// an agent that starts anew neither makes it again nor takes an older one for
// it.
const RunAnnotation = "flotilla.sh/hook-run"

const (
	// ReasonHookFailed: a hook has failed, and will not be run again.
	ReasonHookFailed = "HookFailed"
	// ReasonHookRunning: a hook is not finished.
	ReasonHookRunning = "HookRunning"

	// hookRetry is when to look at a hook again of which no watch has told.
	hookRetry = 15 * time.Second
	// hookStay is how long a Job stays after its end at the least, in seconds.
	hookStay = int64(time.Hour / time.Second)
)

// hookItem is an object that is made at certain events.
type hookItem struct {
	item
	hook.Hook
}

func hookOf(obj *unstructured.Unstructured) (hook.Hook, bool) {
	annotations := obj.GetAnnotations()
	return hook.Of(func(name string) string { return annotations[name] })
}

// compareHooks orders hooks as they run: by weight, kind and name.
func compareHooks(a, b hookItem) int {
	return cmp.Or(cmp.Compare(a.Weight, b.Weight), compareKinds(a.item, b.item), a.ref.Compare(b.ref))
}

func compareKinds(a, b item) int {
	first, second := a.ref.GVK().GroupKind(), b.ref.GVK().GroupKind()
	switch {
	case first == second:
		return 0
	case ssa.IsLessThan(first, second):
		return -1
	}
	return 1
}

// HasHooks tells whether the plan has hooks for an event.
func (p *Plan) HasHooks(e hook.Event) bool { return len(p.hooksAt(e)) > 0 }

// Hooks returns the objects that its hooks may make.
func (p *Plan) Hooks() []Ref {
	var refs []Ref
	for _, h := range p.hooks {
		refs = append(refs, h.ref)
	}
	return refs
}

// RunningHooks returns the hooks of an event that run to an end.
func (p *Plan) RunningHooks(e hook.Event) []Ref {
	var refs []Ref
	for _, h := range p.hooksAt(e) {
		if runs(h.ref) {
			refs = append(refs, h.ref)
		}
	}
	return refs
}

func (p *Plan) hooksAt(e hook.Event) []hookItem {
	return slices.DeleteFunc(slices.Clone(p.hooks), func(h hookItem) bool { return !h.Runs(e) })
}

// HookRun is one run of the hooks of an event.
type HookRun struct {
	// Event is the event.
	Event hook.Event
	// ID tells this run from all others.
	ID string
	// Done are the hooks that are finished.
	Done []Ref
}

// HookError says why a hook is not finished.
type HookError struct {
	Ref Ref
	// Event is what it runs at.
	Event hook.Event
	// Made is true where it was made just now.
	Made bool
	Err  error
}

// Error names the hook and says why.
func (e *HookError) Error() string { return fmt.Sprintf("%s hook %s: %v", e.Event, e.Ref, e.Err) }

// Unwrap returns the cause.
func (e *HookError) Unwrap() error { return e.Err }

// RunHooks makes the hooks of an event, one after the other, as far as it gets
// without waiting. It returns those that are finished, and a HookError where
// one is not: waiting where it runs, stalled where it has failed. Called again
// it goes on; a hook that this run has made is not made again.
func (e *Engine) RunHooks(ctx context.Context, p *Plan, of HookRun) ([]Ref, error) {
	r := &run{engine: e, plan: p, known: map[Ref]Entry{}}
	done := slices.Clone(of.Done)
	for _, h := range p.hooksAt(of.Event) {
		if slices.Contains(done, h.ref) {
			continue
		}
		if made, err := r.hook(ctx, h, of.ID); err != nil {
			return done, &HookError{Ref: h.ref, Event: of.Event, Made: made, Err: err}
		}
		done = append(done, h.ref)
	}
	return done, nil
}

// hook makes one hook unless this run has made it, and tells whether it is
// finished.
func (r *run) hook(ctx context.Context, h hookItem, id string) (made bool, err error) {
	head, err := r.engine.client.Head(ctx, h.ref)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, noKind(err)
	}
	ours := err == nil && head.Annotations[RunAnnotation] == id
	if ours && head.DeletionTimestamp != nil {
		// It goes, and may have ended before.
		if end := r.finished(ctx, h.ref); end == nil || fault.KindOf(end) == fault.Stalled {
			return false, end
		}
	}
	if !ours || head.DeletionTimestamp != nil {
		if err == nil {
			if err := r.clear(ctx, h, head); err != nil {
				return false, err
			}
		}
		if err := r.makeHook(ctx, h, id); err != nil {
			return false, err
		}
		made = true
	}
	return made, r.finished(ctx, h.ref)
}

// makeHook applies a hook, marked as one of this run.
func (r *run) makeHook(ctx context.Context, h hookItem, id string) error {
	it := h.item
	it.obj = it.obj.DeepCopy()
	annotations := it.obj.GetAnnotations()
	annotations[RunAnnotation] = id
	it.obj.SetAnnotations(annotations)
	stay(it.obj)
	_, _, err := r.write(ctx, it, guard{})
	return err
}

// stay lets a Job that ended be found for a while, also where it asks to go at
// once: one that is gone before its end was seen would be run again.
func stay(job *unstructured.Unstructured) {
	ttl, set, err := unstructured.NestedInt64(job.Object, "spec", "ttlSecondsAfterFinished")
	if set && err == nil && ttl < hookStay {
		_ = unstructured.SetNestedField(job.Object, hookStay, "spec", "ttlSecondsAfterFinished")
	}
}

// clear deletes what an earlier run has left, where it is to be deleted or
// could not run again.
func (r *run) clear(ctx context.Context, h hookItem, head *metav1.PartialObjectMetadata) error {
	if _, err := r.verdict(h.ref, head); err != nil {
		return err
	}
	if Holds(h.ref) || !h.DeletedOn(hook.BeforeCreation) && !runs(h.ref) {
		return nil
	}
	if head.DeletionTimestamp == nil {
		if err := r.engine.client.delete(ctx, h.ref, head.UID); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete what an earlier run has left: %w", err)
		}
	}
	head, err := r.engine.client.Head(ctx, h.ref)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return terminating(head)
}

// runs tells whether objects of this kind run to an end.
func runs(ref Ref) bool {
	return ref.Group == "batch" && ref.Kind == "Job" || ref.Group == "" && ref.Kind == "Pod"
}

// finished returns nil where a hook is finished, and else what it waits for or
// how it has failed.
func (r *run) finished(ctx context.Context, ref Ref) error {
	if !runs(ref) {
		return nil
	}
	live, err := r.engine.client.Get(ctx, ref)
	if err != nil {
		return err
	}
	end, message := endOf(live)
	switch end {
	case succeeded:
		return nil
	case failed:
		return fault.Stall(ReasonHookFailed, errors.New(message+r.engine.client.lastWords(ctx, live)))
	}
	return fault.Wait(hookRetry, ReasonHookRunning, errors.New(message))
}

// Dropped returns the hooks of an event that are to be deleted now that it is
// over. failed is the one that has failed; nil where all have succeeded.
func (p *Plan) Dropped(event hook.Event, failed *Ref) []Ref {
	var refs []Ref
	hooks := p.hooksAt(event)
	slices.Reverse(hooks)
	reached := failed == nil
	for _, h := range hooks {
		policy := hook.Succeeded
		if failed != nil && h.ref == *failed {
			reached, policy = true, hook.Failed
		}
		if _, isObject := p.find(h.ref); reached && h.DeletedOn(policy) && !isObject {
			refs = append(refs, h.ref)
		}
	}
	return refs
}

// DropHooks deletes the hooks that Dropped names, and returns those that are
// gone. One that takes its time is not waited for.
func (e *Engine) DropHooks(ctx context.Context, p *Plan, event hook.Event, failed *Ref) ([]Ref, error) {
	var gone []Ref
	for _, ref := range p.Dropped(event, failed) {
		_, err := e.dropOne(ctx, Deployment{Owner: p.deployment.Owner}, Entry{Ref: ref}, nil)
		if fault.ReasonOf(err, "") == ReasonTerminating {
			continue
		}
		if err != nil {
			return gone, &HookError{Ref: ref, Event: event, Err: err}
		}
		gone = append(gone, ref)
	}
	return gone, nil
}
