package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	ssautil "github.com/fluxcd/pkg/ssa/utils"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/flotilla-sh/flotilla/internal/digest"
	"github.com/flotilla-sh/flotilla/internal/fault"
)

const (
	// mustNotExist is a resource version that no stored object has: an apply
	// that asks for it creates the object, or conflicts where there is one.
	mustNotExist = "1"
	// attempts bounds how often an object that changes hands is judged anew.
	attempts = 4
	// replaceTimeout bounds the wait for an object that is replaced to be gone.
	replaceTimeout = 30 * time.Second
)

// guard is the condition under which an apply may be done.
type guard struct {
	// uid is the object that must be there; empty: there must be none.
	uid types.UID
	// found is true where the object was there before the bundle, as far as
	// is known.
	found bool
}

// unchanged tells whether an object is known to be as wanted.
func (r *run) unchanged(it item) bool {
	known := r.intended(it)
	return known.UID != "" && known.Digest == it.digest && !r.plan.deployment.live(it.ref).Changed && !r.plan.deployment.Options.Reapply
}

// apply brings one object to what is wanted.
func (r *run) apply(ctx context.Context, it item) outcome {
	known := r.intended(it)
	if r.unchanged(it) {
		return outcome{entry: &known, action: Unchanged}
	}
	it, err := r.ceding(ctx, it)
	if err != nil {
		return outcome{entry: &known, err: err}
	}
	head, under, err := r.write(ctx, it, guard{uid: types.UID(known.UID), found: known.Found})
	switch {
	case err == nil:
		return applied(r.plan.deployment.Owner, it, known, head, under)
	case fault.ReasonOf(err, "") == ReasonOwned:
		return outcome{err: err}
	case fault.ReasonOf(err, "") == ReasonNoKind && known.UID == "":
		// What was there before may be served in another version.
		return outcome{err: err}
	}
	return outcome{entry: &known, err: err}
}

func applied(owner Owner, it item, known Entry, head *metav1.PartialObjectMetadata, under guard) outcome {
	entry := Entry{
		Ref: it.ref, UID: string(head.UID), Digest: it.digest, Health: it.health, Found: under.found,
		Fields: OwnedFields(head.ManagedFields, owner.Manager), Generation: head.Generation,
		ResourceVersion: head.ResourceVersion,
	}
	switch {
	case under.uid == "":
		return outcome{entry: &entry, action: Created}
	case known.ResourceVersion == head.ResourceVersion:
		return outcome{entry: &entry, action: Unchanged}
	}
	return outcome{entry: &entry, action: Changed}
}

// write applies under a guard. Where the guard fails, the live object is read
// and judged, and the write is tried under the guard that follows from it. It
// returns the guard under which it was done.
func (r *run) write(ctx context.Context, it item, g guard) (head *metav1.PartialObjectMetadata, under guard, err error) {
	for range attempts {
		head, err = r.send(ctx, it, g)
		switch {
		case err == nil:
			return head, g, nil
		case guardFailed(err):
			g, err = r.judged(ctx, it)
		default:
			g, err = r.helped(ctx, it, g, err)
		}
		if err != nil {
			return nil, g, err
		}
	}
	return nil, g, fmt.Errorf("it changed hands %d times while it was applied; trying again later", attempts)
}

func (r *run) send(ctx context.Context, it item, g guard, try ...string) (*metav1.PartialObjectMetadata, error) {
	obj := &unstructured.Unstructured{Object: withMetadata(it.obj.Object)}
	if g.uid == "" {
		obj.SetResourceVersion(mustNotExist)
	} else {
		obj.SetUID(g.uid)
	}
	body, err := json.Marshal(obj.Object)
	if err != nil {
		return nil, stall(ReasonRejected, err)
	}
	head, err := r.engine.client.patch(ctx, it.ref, r.plan.deployment.Owner.Manager, body, true, try...)
	return head, noKind(err)
}

// withMetadata returns a copy of an object that shares all but its metadata.
func withMetadata(object map[string]any) map[string]any {
	out := make(map[string]any, len(object))
	for k, v := range object {
		out[k] = v
	}
	if meta, ok := object["metadata"].(map[string]any); ok {
		own := make(map[string]any, len(meta)+1)
		for k, v := range meta {
			own[k] = v
		}
		out["metadata"] = own
	}
	return out
}

// judged reads the live object and returns the guard under which the bundle
// may apply onto it, or why it may not.
func (r *run) judged(ctx context.Context, it item) (guard, error) {
	head, err := r.engine.client.Head(ctx, it.ref)
	if apierrors.IsNotFound(err) {
		return guard{}, nil
	}
	if err != nil {
		return guard{}, err
	}
	if head.DeletionTimestamp != nil {
		return guard{}, terminating(head)
	}
	decision, err := r.verdict(it.ref, head)
	if err != nil {
		return guard{}, err
	}
	g := guard{uid: head.UID, found: head.Annotations[CreatedAnnotation] == ""}
	if decision == ours && applies(head.ManagedFields, r.plan.deployment.Owner.Manager) {
		return g, nil
	}
	if asRead, err := r.adopt(ctx, it, head); err != nil || !asRead {
		return guard{}, err
	}
	return g, nil
}

// verdict says what the owner of a live object allows; the error says why it
// allows nothing.
func (r *run) verdict(ref Ref, head *metav1.PartialObjectMetadata) (verdict, error) {
	d := r.plan.deployment
	owner := markOf(head)
	decision, why := judge(head, claim{
		Owner: d.Owner, takeOwnership: d.Options.TakeOwnership, abandoned: owner.sameHub(d.Owner) && d.abandoned(owner.bundle, ref),
	})
	if decision != refuse {
		return decision, nil
	}
	owned := &ownedError{why: why}
	if owner.sameHub(d.Owner) {
		owned.bundle = owner.bundle
	}
	return refuse, fault.Wait(ownedRetry, ReasonOwned, owned)
}

func terminating(head *metav1.PartialObjectMetadata) error {
	return fault.Wait(terminatingRetry, ReasonTerminating,
		fmt.Errorf("it is being deleted and waits for its finalizers %v; it is applied again once it is gone", head.Finalizers))
}

// helped mends what made a write fail, where it can be mended.
func (r *run) helped(ctx context.Context, it item, g guard, err error) (guard, error) {
	if name, ok := namespaceMissing(err); ok {
		if !r.plan.deployment.Options.CreateNamespace {
			return g, fault.Wait(kindRetry, ReasonNoNamespace, fmt.Errorf("the namespace %s does not exist and createNamespace is false: create it", name))
		}
		err := r.createNamespace(ctx, name)
		if apierrors.IsForbidden(err) {
			err = fault.Wait(forbiddenRetry, ReasonForbidden, err)
		}
		return g, err
	}
	if kindGone(err) {
		r.engine.client.Kinds.Forget(it.ref.GVK())
		_, lookup := r.engine.client.Kinds.Lookup(ctx, it.ref.GVK())
		return g, noKind(lookup)
	}
	if refusal := r.refusal(ctx, it, g, err); refusal != nil {
		return g, refusal
	}
	return guard{}, r.replace(ctx, it, g)
}

// replace deletes an object that cannot be changed in place, and waits until
// it is gone.
func (r *run) replace(ctx context.Context, it item, g guard) error {
	if err := r.engine.client.delete(ctx, it.ref, g.uid); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("replace it: %w", err)
	}
	return wait.PollUntilContextTimeout(ctx, establishInterval, replaceTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := r.engine.client.Head(ctx, it.ref)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

// OwnedFields returns a digest of the field set that manager has applied.
func OwnedFields(entries []metav1.ManagedFieldsEntry, manager string) string {
	for _, e := range entries {
		if e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" && e.FieldsV1 != nil {
			return digest.OfBytes(e.FieldsV1.GetRawBytes())[:16]
		}
	}
	return ""
}

// Holds tells whether objects of this kind are kept when they leave a bundle:
// what they contain would go with them.
func Holds(ref Ref) bool {
	switch ref.Group + "/" + ref.Kind {
	case "/Namespace", "/PersistentVolumeClaim", "apiextensions.k8s.io/CustomResourceDefinition":
		return true
	}
	return false
}

// isCRD tells whether ref is a custom resource definition.
func isCRD(ref Ref) bool { return ssautil.IsCRD(unstructuredOf(ref)) }

func unstructuredOf(ref Ref) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(ref.GVK())
	return obj
}
