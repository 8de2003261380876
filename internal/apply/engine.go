package apply

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	ssautil "github.com/fluxcd/pkg/ssa/utils"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// parallel bounds the writes that one apply has under way.
	parallel = 4
	// establishTimeout bounds the wait for new kinds to be served.
	establishTimeout  = 60 * time.Second
	establishInterval = 100 * time.Millisecond
)

// Engine applies and removes the objects of bundles on one cluster. It keeps
// no state.
type Engine struct {
	client *Client
}

// NewEngine returns an engine that works through c.
func NewEngine(c *Client) *Engine { return &Engine{client: c} }

// Client returns the client that the engine works through.
func (e *Engine) Client() *Client { return e.client }

// Apply does what p says, up to and with a wave: custom resource definitions and
// namespaces first, and the rest when those are established. What left the
// bundle is pruned once everything else is as wanted. The error says that the
// cluster could not be used; what went wrong with single objects is in the
// result.
func (e *Engine) Apply(ctx context.Context, p *Plan, upTo int) (*Result, error) {
	run := &run{engine: e, plan: p, known: p.deployment.Previous.index(), outcomes: make([]*outcome, len(p.items))}
	run.result.Failures, run.result.Dressed = slices.Clone(p.failures), p.Dressing()
	first := p.before(Definitions + 1)
	if upTo != Copies {
		if err := run.definitions(ctx, first); err != nil {
			return run.finish(ctx, false), err
		}
	}
	if run.halted {
		return run.finish(ctx, false), nil
	}
	if err := run.createNamespaces(ctx); err != nil {
		return run.finish(ctx, false), err
	}
	run.dress(ctx)
	end := len(p.items)
	if upTo < Everything {
		end = max(first, p.before(upTo+1))
	}
	if err := run.stage(ctx, first, end); err != nil {
		return run.finish(ctx, false), err
	}
	if run.bare.Load() {
		run.dress(ctx)
	}
	return run.finish(ctx, upTo == Everything), nil
}

// run is one apply under way.
type run struct {
	engine   *Engine
	plan     *Plan
	known    map[Ref]Entry
	outcomes []*outcome
	result   Result
	// halted is true once an object was refused.
	halted bool
	// bare is true once the namespace to dress was made anew, and undressed is
	// why it could not be dressed.
	bare      atomic.Bool
	undressed error
}

// outcome is what became of one item; without an entry the bundle does not
// have the object.
type outcome struct {
	entry  *Entry
	action Action
	err    error
}

// written tells whether an item was changed on its cluster.
func (o *outcome) written() bool { return o != nil && o.err == nil && o.action != Unchanged }

// definitions applies the first n items, which are namespaces and custom
// resource definitions, and waits until new kinds are served.
func (r *run) definitions(ctx context.Context, n int) error {
	if n == 0 {
		return nil
	}
	if err := r.stage(ctx, 0, n); err != nil {
		return err
	}
	changed := map[Ref]bool{}
	for _, c := range r.result.Changes {
		changed[c.Ref] = c.Action != Unchanged
	}
	for i, it := range r.plan.items[:n] {
		if ssautil.IsCRD(it.obj) && changed[it.ref] {
			if err := r.establish(ctx, it); err != nil {
				r.result.Failures = append(r.result.Failures, Failure{Ref: r.plan.items[i].ref, Err: err})
			}
		}
	}
	return ctx.Err()
}

// establish waits until the kinds of a custom resource definition are served.
func (r *run) establish(ctx context.Context, it item) error {
	kinds := definedKinds([]*unstructured.Unstructured{it.obj})
	r.engine.client.Kinds.Forget()
	err := wait.PollUntilContextTimeout(ctx, establishInterval, establishTimeout, true, func(ctx context.Context) (bool, error) {
		live, err := r.engine.client.Get(ctx, it.ref)
		if err != nil || !established(live) {
			return false, nil //nolint:nilerr // asked again until the time is over
		}
		return r.served(ctx, kinds), nil
	})
	if err != nil {
		return fmt.Errorf("its kinds are not served after %s: %w", establishTimeout, err)
	}
	return nil
}

func (r *run) served(ctx context.Context, kinds map[schema.GroupVersionKind]bool) bool {
	for gvk := range kinds {
		if _, err := r.engine.client.Kinds.Lookup(ctx, gvk); err != nil {
			r.engine.client.Kinds.Forget()
			return false
		}
	}
	return true
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] == "Established" && condition["status"] == "True" {
			return true
		}
	}
	return false
}

// createNamespaces makes the namespaces into which the bundle puts its first
// objects. Whether one exists is not asked: making it again changes nothing.
func (r *run) createNamespaces(ctx context.Context) error {
	if !r.plan.deployment.Options.CreateNamespace {
		return nil
	}
	for _, namespace := range r.newNamespaces() {
		// An account that may not make namespaces may still use those that
		// there are.
		if err := r.createNamespace(ctx, namespace); err != nil && !apierrors.IsForbidden(err) {
			return err
		}
	}
	return nil
}

func (r *run) newNamespaces() []string {
	has := map[string]bool{"": true, metav1.NamespaceDefault: true, metav1.NamespaceSystem: true, metav1.NamespacePublic: true}
	for _, e := range r.plan.deployment.Previous {
		if e.UID != "" {
			has[e.Namespace] = true
		}
	}
	for _, it := range r.plan.items {
		if ssautil.IsNamespace(it.obj) {
			has[it.ref.Name] = true
		}
	}
	var missing []string
	for _, it := range r.plan.items {
		if !has[it.ref.Namespace] {
			has[it.ref.Namespace] = true
			missing = append(missing, it.ref.Namespace)
		}
	}
	return missing
}

func (r *run) createNamespace(ctx context.Context, name string) error {
	ns := &unstructured.Unstructured{}
	ns.SetAPIVersion("v1")
	ns.SetKind("Namespace")
	ns.SetName(name)
	ns.SetAnnotations(map[string]string{CreatedAnnotation: r.plan.deployment.Owner.Bundle})
	resource := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	_, err := r.engine.client.Objects.Resource(resource).Create(ctx, ns, metav1.CreateOptions{FieldManager: agentManager})
	if err == nil {
		r.made(name)
	}
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return fmt.Errorf("create namespace %s: %w", name, err)
}

// made notes that a namespace is a new one.
func (r *run) made(name string) {
	if name == r.plan.deployment.Dress.Namespace {
		r.bare.Store(true)
	}
}

// stage applies items[from:to], kind after kind, several of a kind at a time.
// Once an object is refused, no more is written, and the rest is only tried, so
// that all refusals are known at once.
func (r *run) stage(ctx context.Context, from, to int) error {
	if all := r.writes(from, to); r.rehearses(all) {
		if err := r.prepare(ctx, all); err != nil || r.halted {
			return err
		}
	}
	for from < to {
		if r.halted {
			r.rehearse(ctx, r.writes(from, to))
			return ctx.Err()
		}
		end := from + 1
		for end < to && r.plan.items[end].obj.GroupVersionKind() == r.plan.items[from].obj.GroupVersionKind() {
			end++
		}
		if err := r.group(ctx, from, end); err != nil {
			return err
		}
		from = end
	}
	return nil
}

// group applies those of items[from:to] that were not written earlier.
func (r *run) group(ctx context.Context, from, to int) error {
	outcomes := make([]*outcome, to-from)
	var g errgroup.Group
	g.SetLimit(parallel)
	for i := range outcomes {
		if r.outcomes[from+i] != nil {
			continue
		}
		g.Go(func() error {
			out := r.apply(ctx, r.plan.items[from+i])
			outcomes[i] = &out
			return nil
		})
	}
	_ = g.Wait()
	for i, out := range outcomes {
		if out != nil {
			r.record(from+i, *out)
		}
	}
	return ctx.Err()
}

func (r *run) record(i int, out outcome) {
	ref := r.plan.items[i].ref
	r.outcomes[i] = &out
	if out.err != nil {
		r.result.Failures = append(r.result.Failures, Failure{Ref: ref, Err: out.err})
		r.halted = r.halted || IsRefused(out.err)
		return
	}
	r.result.Changes = append(r.result.Changes, Change{Ref: ref, Action: out.action})
	if out.action == Created && ssautil.IsNamespace(r.plan.items[i].obj) {
		r.made(ref.Name)
	}
}

// finish prunes where all is well, and puts the inventory together.
func (r *run) finish(ctx context.Context, prune bool) *Result {
	var now Inventory
	refused := map[Ref]bool{}
	for i, it := range r.plan.items {
		entry := r.entry(i)
		if entry == nil {
			refused[it.ref.Identity()] = true
			continue
		}
		now = append(now, *entry)
	}
	gone := slices.DeleteFunc(r.plan.deployment.Previous.missingFrom(now), func(e Entry) bool { return refused[e.Identity()] })
	if prune && len(r.result.Failures) == 0 && ctx.Err() == nil {
		gone = r.engine.prune(ctx, r.plan.deployment, gone, &r.result)
		r.undress(ctx)
	}
	r.result.Inventory = append(Inventory(gone), now...)
	r.plan.deployment.Previous, r.plan.deployment.Dressed = r.result.Inventory, r.result.Dressed
	slices.SortStableFunc(r.result.Failures, func(a, b Failure) int { return a.Ref.Compare(b.Ref) })
	return &r.result
}

// entry returns what the bundle has of item i: nil where it was refused, and
// what was known or intended where the run did not reach it.
func (r *run) entry(i int) *Entry {
	if out := r.outcomes[i]; out != nil {
		return out.entry
	}
	entry := r.intended(r.plan.items[i])
	return &entry
}

// intended returns what was known of an item before the run.
func (r *run) intended(it item) Entry {
	if known, ok := r.known[it.ref.Identity()]; ok {
		return known
	}
	return Entry{Ref: it.ref, Health: it.health}
}
