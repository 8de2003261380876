package observe

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-sh/flotilla/internal/apply"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Finding is how one object was found.
type Finding struct {
	Ref apply.Ref
	UID string
	// Health is whether it is ready.
	Health Health
	// Drift is how it differs from what was applied; nil where it does not.
	Drift *fleet.ModifiedStatus
	// Seen is the state in which it was found.
	Seen Seen
}

// Checker reads objects and finds out how they are.
type Checker struct {
	client *apply.Client
}

// NewChecker returns a checker that reads through c.
func NewChecker(c *apply.Client) *Checker { return &Checker{client: c} }

// as is the client by which everything is read for a deployment.
func (c *Checker) as(w Wanted) *apply.Client {
	if w.As != nil {
		return w.As
	}
	return c.client
}

// Health reads an object for its state only.
func (c *Checker) Health(ctx context.Context, ref apply.Ref, w Wanted) (Finding, error) {
	live, err := c.as(w).Get(ctx, ref)
	if apierrors.IsNotFound(err) || apply.IsNoKind(err) {
		return missing(ref, w.Rules), nil
	}
	if err != nil {
		return Finding{}, err
	}
	return c.found(ctx, ref, live, w), nil
}

// Drift reads an object and compares it with what the apply of desired would
// make of it. The baseline is what was applied last.
func (c *Checker) Drift(ctx context.Context, desired *unstructured.Unstructured, baseline apply.Entry, w Wanted) (Finding, error) {
	return settled(func() (Finding, bool, error) { return c.driftOnce(ctx, desired, baseline, w) })
}

// looks is how often an object is compared anew that changes while it is
// compared.
const looks = 3

// settled looks again where the object has changed between the read and the dry
// run: their difference is not what anybody has changed.
func settled(look func() (f Finding, moved bool, err error)) (f Finding, err error) {
	moved := true
	for n := 0; n < looks && moved && err == nil; n++ {
		f, moved, err = look()
	}
	return f, err
}

func moved(wanted, live *unstructured.Unstructured) bool {
	return wanted.GetResourceVersion() != live.GetResourceVersion()
}

func (c *Checker) driftOnce(ctx context.Context, desired *unstructured.Unstructured, baseline apply.Entry, w Wanted) (f Finding, again bool, err error) {
	ref := apply.RefOf(desired)
	live, err := c.as(w).Get(ctx, ref)
	if apierrors.IsNotFound(err) || apply.IsNoKind(err) {
		return missing(ref, w.Rules), false, nil
	}
	if err != nil {
		return Finding{}, false, err
	}
	finding := c.found(ctx, ref, live, w)
	if apply.OwnedByAnother(live, w.Owner) {
		finding.Drift = modified(ref)
		finding.Drift.Create, finding.Drift.Exist = true, true
		return finding, false, nil
	}
	if live.GetDeletionTimestamp() != nil {
		return finding, false, nil
	}
	wanted, err := c.as(w).DryRun(ctx, desired, w.Owner.Manager)
	if apply.IsNoKind(err) {
		return finding, false, nil // its version is not served any more: nothing can be told
	}
	if apply.IsRefusal(err) {
		// A webhook that knows no dry run, or an object that cannot be changed
		// back in place: only that something is ours no more can be told.
		if finding.Seen.UID != baseline.UID || finding.Seen.Fields != baseline.Fields {
			finding.Drift = modified(ref)
		}
		return finding, false, nil
	}
	if err != nil {
		return Finding{}, false, err
	}
	finding.Drift, err = c.drift(ctx, wanted, live, w)
	return finding, moved(wanted, live), err
}

// Dressed compares what a bundle has set on its namespace with what is there. A
// namespace that is gone, or that the bundle's account may not read, tells
// nothing.
func (c *Checker) Dressed(ctx context.Context, w Wanted) (Finding, error) {
	return settled(func() (Finding, bool, error) { return c.dressedOnce(ctx, w) })
}

func (c *Checker) dressedOnce(ctx context.Context, w Wanted) (f Finding, again bool, err error) {
	desired := w.Dress.Object()
	finding := Finding{Ref: apply.RefOf(desired), Health: Health{Ready: true}}
	live, err := c.as(w).Get(ctx, finding.Ref)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || err == nil && live.GetDeletionTimestamp() != nil {
		return finding, false, nil
	}
	if err != nil {
		return Finding{}, false, err
	}
	w.Owner.Manager = apply.DressManager(w.Owner)
	wanted, err := c.as(w).DryRun(ctx, desired, w.Owner.Manager)
	if apply.IsRefusal(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return finding, false, nil
	}
	if err != nil {
		return Finding{}, false, err
	}
	finding.Drift, err = c.drift(ctx, wanted, live, w)
	return finding, moved(wanted, live), err
}

func (c *Checker) found(ctx context.Context, ref apply.Ref, live *unstructured.Unstructured, w Wanted) Finding {
	meta := metav1.ObjectMeta{
		UID: live.GetUID(), ResourceVersion: live.GetResourceVersion(), Generation: live.GetGeneration(),
		ManagedFields: live.GetManagedFields(),
	}
	finding := Finding{
		Ref: ref, UID: string(live.GetUID()),
		Health: w.Rules.health(live),
		Seen:   seenOf(&meta, w.Owner.Manager),
	}
	if !finding.Health.Ready && c.awaitsConsumer(ctx, live) {
		finding.Health = Health{Ready: true}
	}
	if _, said := live.Object["status"]; !said && finding.Health.Ready && !apply.BuiltIn(ref) {
		kind, err := c.as(w).Kinds.Lookup(ctx, ref.GVK())
		finding.Health.Silent = err == nil && kind.Status
	}
	return finding
}

// awaitsConsumer tells whether a claim is as it should be until a Pod uses it:
// its storage class makes no volume before. Where the class cannot be read, a
// claim counts as any other.
func (c *Checker) awaitsConsumer(ctx context.Context, live *unstructured.Unstructured) bool {
	class := awaitsConsumer(live)
	if class == "" {
		return false
	}
	found, err := c.client.Get(ctx, apply.Ref{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass", Name: class})
	if err != nil {
		return false
	}
	mode, _, _ := unstructured.NestedString(found.Object, "volumeBindingMode")
	return mode == "WaitForFirstConsumer"
}

func missing(ref apply.Ref, rules Rules) Finding {
	if rules.mayBeMissing(ref) {
		return Finding{Ref: ref, Health: Health{Ready: true}}
	}
	m := modified(ref)
	m.Create = true
	return Finding{Ref: ref, Drift: m, Health: Health{Message: "is missing"}}
}

func modified(ref apply.Ref) *fleet.ModifiedStatus {
	return &fleet.ModifiedStatus{Kind: ref.Kind, APIVersion: ref.APIVersion(), Namespace: ref.Namespace, Name: ref.Name}
}

// drift compares the live object with what an apply would make of it.
func (c *Checker) drift(ctx context.Context, wanted, live *unstructured.Unstructured, of Wanted) (*fleet.ModifiedStatus, error) {
	ref := apply.RefOf(live)
	by := writers(wanted.GetManagedFields(), live.GetManagedFields(), of.Owner.Manager)
	scaledBy := apply.ScaledBy(live.GetManagedFields())
	if err := masked(wanted, live); err != nil {
		return nil, err
	}
	w, l := compared(wanted), compared(live)
	fields := of.Rules.keep(ref, differences(w, l))
	isReplicas := func(f field) bool { return f.pointer == "/spec/replicas" }
	if slices.ContainsFunc(fields, isReplicas) {
		autoscaled, err := c.as(of).Autoscaled(ctx, ref, scaledBy)
		if err != nil {
			return nil, err
		}
		if autoscaled {
			fields = slices.DeleteFunc(fields, isReplicas)
		}
	}
	if len(fields) == 0 {
		return nil, nil //nolint:nilnil // no difference is no drift
	}
	m := modified(ref)
	m.Fields, m.By = reported(fields), by
	if of.Secret {
		hide(m.Fields)
	} else {
		m.Patch = patchOf(w, l)
	}
	return m, nil
}

// Wanted is what a deployment should have on the cluster.
type Wanted struct {
	Owner apply.Owner
	// As reads as the bundle's account; nil reads as the agent.
	As    *apply.Client
	Rules Rules
	// Dress is what the bundle has set on its namespace; empty where nothing.
	Dress apply.Dress
	// Secret is true where no value of the objects may be shown.
	Secret bool
	// Object finds an object as it was applied. Only a call decodes the
	// content.
	Object func(apply.Ref) (*unstructured.Unstructured, bool, error)
}
