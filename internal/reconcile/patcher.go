package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Patcher remembers an object as it was read and writes what changed since.
type Patcher struct {
	client  client.Client
	base    client.Object
	written *Written
}

// Status writes the status of obj where it differs from what was read. Several
// controllers share one status and one list of conditions. What the others
// have written since is kept as far as the cache knows it; beyond that the
// patch is refused, and the caller looks again: as it does where what was read
// is older than what this controller has written itself.
func (p *Patcher) Status(ctx context.Context, obj client.Object) error {
	if err := p.written.behind(obj); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(statusOf(p.base), statusOf(obj)) {
		return p.confirm(ctx)
	}
	change, err := difference(p.base, obj)
	if err != nil {
		return err
	}
	if len(change) == 0 {
		return p.confirm(ctx)
	}
	version, conditions, err := p.latest(ctx, obj)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if _, ok := change[conditionsKey]; ok {
		change[conditionsKey] = rebase(conditionsOf(p.base), conditionsOf(obj), conditions)
	}
	data, err := json.Marshal(map[string]any{
		"metadata": p.precondition(obj, version),
		"status":   change,
	})
	if err != nil {
		return fmt.Errorf("encode the status: %w", err)
	}
	made, err := p.write(ctx, obj, data)
	if err == nil {
		obj.SetResourceVersion(made)
	}
	p.written.note(obj, err)
	return client.IgnoreNotFound(err)
}

func (p *Patcher) precondition(obj client.Object, version string) map[string]any {
	return map[string]any{"resourceVersion": version, "uid": obj.GetUID()}
}

// write patches and returns the version that this made. It asks for metadata
// alone in the answer: the API server would encode the whole object once more.
func (p *Patcher) write(ctx context.Context, obj client.Object, data []byte) (string, error) {
	gvk, err := p.client.GroupVersionKindFor(obj)
	if err != nil {
		return "", err
	}
	made := &metav1.PartialObjectMetadata{}
	made.SetGroupVersionKind(gvk)
	made.Namespace, made.Name = obj.GetNamespace(), obj.GetName()
	if err := p.client.Status().Patch(ctx, made, client.RawPatch(types.MergePatchType, data)); err != nil {
		return "", err
	}
	return made.ResourceVersion, nil
}

// latest returns the version and the conditions that a change is to be based
// on: those of the cache, or, where the caller has written the object since,
// those that it was read with. These it is, too, where nobody knows whether the
// last write was done: what differs from them may not be all that differs from
// what there is.
func (p *Patcher) latest(ctx context.Context, obj client.Object) (string, []fleet.Condition, error) {
	if p.written.open(obj) {
		return obj.GetResourceVersion(), conditionsOf(p.base), nil
	}
	cached := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	if err := p.client.Get(ctx, client.ObjectKeyFromObject(obj), cached, client.UnsafeDisableDeepCopy); err != nil {
		return "", nil, err
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), obj.GetResourceVersion())
	if err != nil || order <= 0 {
		return obj.GetResourceVersion(), conditionsOf(p.base), nil
	}
	return cached.GetResourceVersion(), conditionsOf(cached), nil
}

const conditionsKey = "conditions"

// difference is the merge patch from the status of one object to that of
// another, by field.
func difference(from, to client.Object) (map[string]any, error) {
	a, err := json.Marshal(statusOf(from))
	if err != nil {
		return nil, fmt.Errorf("encode the status: %w", err)
	}
	b, err := json.Marshal(statusOf(to))
	if err != nil {
		return nil, fmt.Errorf("encode the status: %w", err)
	}
	patch, err := jsonpatch.CreateMergePatch(a, b)
	if err != nil {
		return nil, fmt.Errorf("compare the status: %w", err)
	}
	change := map[string]any{}
	if err := json.Unmarshal(patch, &change); err != nil {
		return nil, fmt.Errorf("compare the status: %w", err)
	}
	return change, nil
}

// rebase carries what changed from before to after over to the conditions that
// there are now.
func rebase(before, after, now []fleet.Condition) []fleet.Condition {
	out := slices.Clone(now)
	for _, c := range after {
		if was := fleet.FindCondition(before, c.Type); was != nil && *was == c {
			continue
		}
		if is := fleet.FindCondition(out, c.Type); is != nil {
			*is = c
		} else {
			out = append(out, c)
		}
	}
	for _, c := range before {
		if fleet.FindCondition(after, c.Type) == nil {
			fleet.RemoveCondition(&out, c.Type)
		}
	}
	return out
}

// statusOf returns the status of an object of Flotilla's kinds.
func statusOf(obj client.Object) any {
	return reflect.ValueOf(obj).Elem().FieldByName("Status").Interface()
}

// conditionsOf returns the conditions in the status of an object.
func conditionsOf(obj client.Object) []fleet.Condition {
	if o, ok := obj.(Conditioned); ok {
		return *o.StatusConditions()
	}
	return nil
}
