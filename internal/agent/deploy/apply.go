package deploy

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-sh/flotilla/internal/agent/state"
	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/effect"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// correct puts back what is not as it was applied.
func (c *Controller) correct(ctx context.Context, j job) error {
	next := j.next()
	objects, err := c.fetch(ctx, j, next)
	if err != nil {
		return err
	}
	d := c.deployment(next, objects, false)
	d.Options.Recreate = d.Options.Recreate || next.CorrectDrift.Force
	plan, err := c.engine.Plan(ctx, d)
	if err != nil {
		return err
	}
	c.update(j.name, func(j *job) { j.trouble = j.trouble.correcting(j.wantedID(), c.clock.Now(), rand.Float64) })
	_, err = c.run(ctx, next, plan, apply.Everything, func(*state.Record) {})
	return err
}

// run applies a plan up to a wave and stores what came of it. Where all went
// well, the record is changed by then.
func (c *Controller) run(ctx context.Context, next *state.Record, plan *apply.Plan, wave int, then func(*state.Record)) ([]apply.Failure, error) {
	name, owner := next.Name, next.Owner()
	engine, err := c.as(ctx, next.Options)
	if err != nil {
		return nil, err
	}
	c.observer.Begin(owner)
	given := c.givenUp()
	result, failed := engine.Apply(ctx, plan, wave)
	c.metrics.applied(failed == nil && len(result.Failures) == 0)
	done := *next
	done.Inventory, done.Dressed = result.Inventory, result.Dressed
	done.Held, done.Asked = heldAfter(next.Held, result), apply.Asked(result.Failures)
	if failed == nil && len(result.Failures) == 0 {
		then(&done)
	}
	c.update(name, func(j *job) {
		j.record, j.unsaved, j.trackedSince = &done, true, c.clock.Now()
		c.labels[owner.Label] = name
		switch {
		case len(result.Failures) > 0:
			j.trouble = j.trouble.failed(done.DeploymentID, result.Failures, nil, c.clock.Now(), rand.Float64)
		case failed == nil:
			j.trouble.failures, j.trouble.err = nil, nil
		}
	})
	if failed == nil {
		failed = c.save(ctx, name, &done)
	}
	c.unhold(name, done.Inventory)
	c.freed(name, result.Failures, given)
	c.tellKinds(result)
	c.observer.Dressed(owner, c.worn(&done).Namespace)
	c.observer.Applied(ctx, owner, done.Inventory, written(result))
	*next = done
	return result.Failures, failed
}

// tellKinds says that the kinds of the cluster have changed.
func (c *Controller) tellKinds(result *apply.Result) {
	for _, change := range result.Changes {
		if change.Ref.Kind == "CustomResourceDefinition" && change.Action != apply.Unchanged && c.changed != nil {
			c.changed()
			return
		}
	}
}

func written(result *apply.Result) map[apply.Ref]bool {
	out := map[apply.Ref]bool{}
	for _, change := range result.Changes {
		if change.Action != apply.Unchanged {
			out[change.Ref.Identity()] = true
		}
	}
	return out
}

// heldAfter adds what is held now, and drops what the bundle has again.
func heldAfter(held []apply.Ref, result *apply.Result) []apply.Ref {
	out := slices.Clone(held)
	for _, ref := range result.Held {
		if !slices.Contains(out, ref) {
			out = append(out, ref)
		}
	}
	out = slices.DeleteFunc(out, func(ref apply.Ref) bool {
		return slices.ContainsFunc(result.Inventory, func(e apply.Entry) bool { return e.Identity() == ref.Identity() })
	})
	slices.SortFunc(out, apply.Ref.Compare)
	return out
}

// deployment puts together what the engine needs.
func (c *Controller) deployment(r *state.Record, objects []*unstructured.Unstructured, reapply bool) apply.Deployment {
	owner, o := r.Owner(), r.Options
	d := apply.Deployment{
		Owner: owner, Objects: objects, Previous: r.Inventory, Held: r.Held, Dressed: r.Dressed,
		Dress: apply.Dress{
			Namespace: releaseNamespace(o),
			Labels:    effect.OnNamespace(o.NamespaceLabels), Annotations: effect.OnNamespace(o.NamespaceAnnotations),
		},
		Options: apply.Options{
			Namespace: o.TargetNamespace, DefaultNamespace: o.DefaultNamespace,
			CreateNamespace: o.CreateNamespace == nil || *o.CreateNamespace,
			DeleteCRDs:      o.DeleteCRDResources, DeleteNamespaces: o.DeleteNamespace,
			AgentNamespace: c.namespace,
			KeepAll:        o.KeepResources,
			Reapply:        reapply,
			Secret:         r.Secret(),
		},
		Live:      func(ref apply.Ref) apply.Live { return c.observer.Live(owner.Label, ref) },
		Abandoned: c.abandoned,
		Tenant:    func(namespace string) string { return c.tenant(r.Name, namespace) },
	}
	if o.Helm != nil {
		d.Options.TakeOwnership, d.Options.Recreate = o.Helm.TakeOwnership, o.Helm.Force
	}
	return d
}

// releaseNamespace is the namespace that a deployment goes to.
func releaseNamespace(o fleet.BundleDeploymentOptions) string {
	return cmp.Or(o.TargetNamespace, o.DefaultNamespace, "default")
}

// fetch returns the objects of the content that next names, and writes into
// next which payloads they came from. Every payload is verified; one that is
// not what its digest says is an error, and the next attempt fetches it again.
func (c *Controller) fetch(ctx context.Context, j job, next *state.Record) ([]*unstructured.Unstructured, error) {
	root, err := c.root(ctx, j, next)
	if err != nil {
		return nil, err
	}
	manifest, took, err := content.FetchObjects(ctx, c.origin(next.Registry), c.store, root)
	c.count(j.name, root, took)
	if err != nil {
		return nil, err
	}
	next.Refs = manifest.Refs
	objects := make([]*unstructured.Unstructured, 0, len(manifest.Objects))
	for _, raw := range manifest.Objects {
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(raw); err != nil {
			return nil, fmt.Errorf("content %s holds something that is no Kubernetes object: %w", root.Name, err)
		}
		objects = append(objects, obj)
	}
	return objects, nil
}

// root finds the content to apply. The hub's where there is any; a source is
// rendered first.
func (c *Controller) root(ctx context.Context, j job, next *state.Record) (content.Ref, error) {
	switch {
	case j.desired != nil && j.desired.Spec.Content != nil:
		ref := j.desired.Spec.Content
		next.Registry = ref.Registry
		root := content.Ref{Digest: ref.Digest, Name: ref.Name}
		if !ref.Source {
			next.Rendered = nil
			return root, nil
		}
		if j.finished() && !j.stale {
			break
		}
		if err := c.renderHere(ctx, j, root, next); err != nil {
			return content.Ref{}, err
		}
	}
	if len(next.Refs) == 0 {
		return content.Ref{}, fmt.Errorf("nothing is stored of the content of deployment %s, and the hub does not answer", next.Name)
	}
	return next.Refs[0], nil
}

// save stores a record and makes it the job's.
func (c *Controller) save(ctx context.Context, name string, r *state.Record) error {
	err := c.store.Save(ctx, r)
	c.update(name, func(j *job) {
		if err == nil {
			j.record, j.unsaved = r, false
		}
	})
	return err
}
