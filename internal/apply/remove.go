package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-sh/flotilla/internal/fault"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Remove takes the objects of a bundle off the cluster, in reverse apply order.
// Objects of one kind must be gone before the next kind follows, so that a
// controller outlives what waits for it: the caller calls again until the
// result's inventory is empty.
func (e *Engine) Remove(ctx context.Context, d Deployment) (*Result, error) {
	result := &Result{}
	rest := slices.Clone(d.Previous)
	for len(rest) > 0 && len(result.Failures) == 0 && ctx.Err() == nil {
		first := len(rest) - 1
		for first > 0 && rest[first-1].GVK() == rest[first].GVK() {
			first--
		}
		group := rest[first:]
		slices.Reverse(group)
		left := e.drop(ctx, d, group, result)
		rest = append(rest[:first:first], left...)
		if len(left) > 0 {
			break
		}
	}
	result.Inventory = rest
	return result, ctx.Err()
}

// prune removes entries that have left a bundle, and returns those that are
// still there.
func (e *Engine) prune(ctx context.Context, owner Owner, gone []Entry, result *Result) []Entry {
	slices.Reverse(gone)
	left := e.drop(ctx, Deployment{Owner: owner}, gone, result)
	slices.Reverse(left)
	return left
}

// drop deletes entries one by one and returns those that are still there; each
// of these is a failure that says what it waits for.
func (e *Engine) drop(ctx context.Context, d Deployment, entries []Entry, result *Result) []Entry {
	var left []Entry
	for _, entry := range entries {
		fate, err := e.dropOne(ctx, d, entry)
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

func (e *Engine) dropOne(ctx context.Context, d Deployment, entry Entry) (fate, error) {
	head, err := e.client.Head(ctx, entry.Ref)
	if _, unknown := errors.AsType[*NoKindError](err); unknown || apierrors.IsNotFound(err) {
		return absent, nil
	}
	if err != nil {
		return absent, err
	}
	if head.Annotations[fleet.BundleAnnotation] != d.Owner.Bundle {
		return absent, nil
	}
	if stays(head, entry.Ref, d.Options) {
		return kept, e.release(ctx, entry.Ref, d.Owner.Bundle)
	}
	if head.DeletionTimestamp == nil {
		err = e.client.delete(ctx, entry.Ref, head.UID)
	}
	if apierrors.IsNotFound(err) {
		return absent, nil
	}
	if err != nil {
		return absent, fmt.Errorf("delete it: %w", err)
	}
	if len(head.Finalizers) > 0 {
		return absent, fault.Wait(terminatingRetry, ReasonTerminating,
			fmt.Errorf("it is being deleted and waits for its finalizers %s", strings.Join(head.Finalizers, ", ")))
	}
	return removed, nil
}

// stays tells whether an object is kept although its bundle has it no more.
func stays(head *metav1.PartialObjectMetadata, ref Ref, o Options) bool {
	if o.KeepAll || head.Annotations["helm.sh/resource-policy"] == "keep" || head.Labels["objectset.rio.cattle.io/prune"] == "false" {
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

// release takes the bundle's marks off an object that is kept, so that any
// bundle may have it.
func (e *Engine) release(ctx context.Context, ref Ref, bundle string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"labels":      map[string]any{fleet.DeploymentLabel: nil},
		"annotations": map[string]any{fleet.BundleAnnotation: nil, HeldAnnotation: bundle},
	}})
	if err != nil {
		return err
	}
	if err := e.client.edit(ctx, ref, types.MergePatchType, body); err != nil {
		return fmt.Errorf("keep it: %w", err)
	}
	return nil
}
