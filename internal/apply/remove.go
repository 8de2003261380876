package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/fault"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Remove takes the objects of a bundle off the cluster, in reverse apply order.
// Objects of one kind must be gone before the next kind follows, so that a
// controller outlives what waits for it: the caller calls again until the
// result's inventory is empty.
func (e *Engine) Remove(ctx context.Context, d Deployment) (*Result, error) {
	result := &Result{}
	result.Inventory = e.takeOff(ctx, d, d.Previous, result)
	return result, ctx.Err()
}

// prune removes entries that have left a bundle, as Remove does, and returns
// those that are still there. What the options say of a removal concerns a
// bundle that goes as a whole.
func (e *Engine) prune(ctx context.Context, d Deployment, gone []Entry, result *Result) []Entry {
	d.Options = Options{}
	return e.takeOff(ctx, d, gone, result)
}

// takeOff drops entries from the last to the first, kind by kind, until one is
// still there, and returns what is left.
func (e *Engine) takeOff(ctx context.Context, d Deployment, entries []Entry, result *Result) []Entry {
	rest := slices.Clone(entries)
	for len(rest) > 0 && len(result.Failures) == 0 && ctx.Err() == nil {
		first := len(rest) - 1
		for first > 0 && rest[first-1].GVK() == rest[first].GVK() {
			first--
		}
		group := slices.Clone(rest[first:])
		slices.Reverse(group)
		left := e.drop(ctx, d, group, result)
		slices.Reverse(left)
		rest = append(rest[:first:first], left...)
	}
	return rest
}

// drop deletes entries one by one and returns those that are still there; each
// of these is a failure that says what it waits for.
func (e *Engine) drop(ctx context.Context, d Deployment, entries []Entry, result *Result) []Entry {
	var left []Entry
	for _, entry := range entries {
		fate, err := e.dropOne(ctx, d, entry, slices.Concat(d.Held, result.Held))
		switch {
		case err != nil:
			left = append(left, entry)
			result.Failures = append(result.Failures, Failure{Ref: entry.Ref, Err: err})
		case fate == kept:
			result.Held = append(result.Held, entry.Ref)
		case fate == removed:
			result.Changes = append(result.Changes, Change{Ref: entry.Ref, Action: Deleted})
		}
	}
	return left
}

// fate is what became of an object that left its bundle.
type fate int

const (
	// absent: it is gone already, or another has it.
	absent fate = iota
	// removed: it was deleted.
	removed
	// kept: it stays on the cluster and belongs to nobody.
	kept
)

func (e *Engine) dropOne(ctx context.Context, d Deployment, entry Entry, held []Ref) (fate, error) {
	head, err := e.client.Head(ctx, entry.Ref)
	if IsNoKind(err) || apierrors.IsNotFound(err) {
		return absent, nil
	}
	if err != nil {
		return absent, err
	}
	marked := markOf(head).of(d.Owner)
	isNamespace := entry.Group == "" && entry.Kind == "Namespace"
	if !isNamespace && markOf(head).bundle == "" && head.Annotations[HeldAnnotation] == d.Owner.Bundle {
		return kept, nil // by a pass that was not stored any more
	}
	if !marked && !(isNamespace && d.Options.DeleteNamespaces && markOf(head).bundle == "") {
		return absent, nil
	}
	stay := stays(head, entry.Ref, d.Options)
	if !stay && isNamespace && head.DeletionTimestamp == nil {
		stay, err = e.namespaceStays(ctx, d, namespaceFacts{head: head, found: entry.Found || !marked, held: held})
		if err != nil {
			return absent, err
		}
	}
	switch {
	case stay && marked:
		return kept, e.release(ctx, entry.Ref, head, d.Owner.Bundle)
	case stay:
		return absent, nil
	case d.Undecided != nil:
		return absent, fault.Wait(undecidedRetry, ReasonUndecided, fmt.Errorf("it left the bundle and is kept for now: %w", d.Undecided))
	}
	return e.deleteAndLook(ctx, entry.Ref, head)
}

// deleteAndLook deletes an object and tells whether it is gone. One that takes
// its time is a failure that says what it waits for.
func (e *Engine) deleteAndLook(ctx context.Context, ref Ref, head *metav1.PartialObjectMetadata) (fate, error) {
	if head.DeletionTimestamp == nil {
		err := e.client.delete(ctx, ref, head.UID)
		if err == nil && lingers(ref) {
			head, err = e.client.Head(ctx, ref)
		}
		if apierrors.IsNotFound(err) {
			return removed, nil
		}
		if err != nil {
			return absent, fmt.Errorf("delete it: %w", err)
		}
	}
	if len(head.Finalizers) == 0 && head.DeletionTimestamp == nil {
		return removed, nil
	}
	return absent, fault.Wait(terminatingRetry, ReasonTerminating, e.leaving(ctx, ref, head))
}

// lingers tells whether objects of a kind stay for a while once they are
// deleted, without a finalizer.
func lingers(ref Ref) bool {
	return ref.Group == "" && (ref.Kind == "Pod" || ref.Kind == "Namespace")
}

// leaving says what an object waits for that is being deleted.
func (e *Engine) leaving(ctx context.Context, ref Ref, head *metav1.PartialObjectMetadata) error {
	since := ""
	if head.DeletionTimestamp != nil {
		since = " since " + head.DeletionTimestamp.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	switch {
	case len(head.Finalizers) > 0:
		return fmt.Errorf("it is being deleted and waits for its finalizers %s%s", strings.Join(head.Finalizers, ", "), since)
	case ref.Kind == "Namespace":
		return fmt.Errorf("it is being deleted%s%s", since, e.remaining(ctx, ref))
	}
	return fmt.Errorf("it is being deleted%s", since)
}

// stays tells whether an object is kept although its bundle has it no more.
func stays(head *metav1.PartialObjectMetadata, ref Ref, o Options) bool {
	if o.KeepAll || head.Annotations["helm.sh/resource-policy"] == "keep" ||
		head.Labels[fleet.PruneLabel] == "false" || head.Annotations[fleet.PruneLabel] == "false" {
		return true
	}
	switch {
	case isCRD(ref):
		return !o.DeleteCRDs
	case ref.Kind == "Namespace":
		return !o.DeleteNamespaces
	}
	return Holds(ref)
}
