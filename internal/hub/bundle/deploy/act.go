package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/deployment"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/hub/registries"
	"github.com/flotilla-sh/flotilla/internal/pipeline"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// writers bounds the parallel writes of one plan.
const writers = 16

// act carries out a plan: content before the deployments that name it.
func (c *Controller) act(ctx context.Context, plan deployment.Plan, outcomes []pipeline.Outcome, at *registries.Place) error {
	encoded := c.puts(ctx, outcomes, at)
	var writes parallel
	writes.group.SetLimit(writers)
	for _, d := range plan.Create {
		put := encoded[d.Namespace]
		delete(encoded, d.Namespace)
		writes.do(func() error { return c.create(ctx, d, put) })
	}
	for _, u := range plan.Update {
		put := encoded[u.New.Namespace]
		delete(encoded, u.New.Namespace)
		writes.do(func() error { return c.update(ctx, u, put) })
	}
	for _, d := range plan.Release {
		writes.do(func() error { return c.release(ctx, d) })
	}
	for _, put := range encoded {
		// Costs nothing where it is stored; one that was lost comes back.
		writes.do(put)
	}
	return writes.wait()
}

// puts returns for each namespace what stores its content, and lets its agent
// read it where that is in a registry. Clusters that share a render share one
// put.
func (c *Controller) puts(ctx context.Context, outcomes []pipeline.Outcome, at *registries.Place) map[string]func() error {
	out := make(map[string]func() error, len(outcomes))
	shared := map[*content.Encoded]func() error{}
	for _, o := range outcomes {
		enc, namespace := o.Encoded, o.Desired.Namespace
		if at != nil && o.Err == nil {
			out[namespace] = func() error { return c.putAt(ctx, at, enc, namespace) }
			continue
		}
		if enc == nil {
			continue
		}
		put := shared[enc]
		if put == nil {
			put = once(func() error { return c.Store.Put(ctx, *enc, namespace) })
		}
		if !secret(enc) {
			shared[enc] = put
		}
		out[namespace] = put
	}
	return out
}

// putAt stores content in a registry, but for what is secret of it.
func (c *Controller) putAt(ctx context.Context, at *registries.Place, enc *content.Encoded, namespace string) error {
	if enc != nil {
		if err := c.Store.PutSecrets(ctx, *enc, namespace); err != nil {
			return err
		}
		if err := at.Put(ctx, *enc); err != nil {
			return err
		}
	}
	return at.Grant(ctx, namespace)
}

// once lets the first caller put, and the others wait for it. They wait on a
// channel: nobody holds a lock over a request, which may take long.
func once(put func() error) func() error {
	var begun atomic.Bool
	var err error
	done := make(chan struct{})
	return func() error {
		if begun.CompareAndSwap(false, true) {
			defer close(done)
			err = put()
			return err
		}
		<-done
		return err
	}
}

// secret tells whether anything of enc is stored in each cluster's namespace.
func secret(enc *content.Encoded) bool {
	return enc.Root.Secret || slices.ContainsFunc(enc.Chunks, func(b content.Blob) bool { return b.Secret })
}

// parallel runs writes side by side. One that fails does not stop the others.
type parallel struct {
	group errgroup.Group
	mu    sync.Mutex
	errs  []error
}

func (p *parallel) do(write func() error) {
	p.group.Go(func() error {
		if err := write(); err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.errs = append(p.errs, err)
		}
		return nil
	})
}

// wait returns what went wrong, the first few of it.
func (p *parallel) wait() error {
	const most = 3
	_ = p.group.Wait() // do keeps the errors
	if more := len(p.errs) - most; more > 0 {
		return errors.Join(append(p.errs[:most:most], fmt.Errorf("and %d more", more))...)
	}
	return errors.Join(p.errs...)
}

func (c *Controller) create(ctx context.Context, d *fleet.BundleDeployment, put func() error) error {
	if put != nil {
		if err := put(); err != nil {
			return err
		}
	}
	err := c.Client.Create(ctx, d)
	if apierrors.IsAlreadyExists(err) {
		return fault.Wait(soon, "Behind", fmt.Errorf("the deployment in %s exists already; looking again", d.Namespace))
	}
	if err != nil {
		return fmt.Errorf("create the deployment in %s: %w", d.Namespace, err)
	}
	return nil
}

func (c *Controller) update(ctx context.Context, u deployment.Update, put func() error) error {
	if put != nil {
		if err := put(); err != nil {
			return err
		}
	}
	// Nobody asks who wrote which field of a deployment, and every write pays
	// for the record: the first change of the spec clears it.
	u.New.ManagedFields = []metav1.ManagedFieldsEntry{{}}
	patch := client.MergeFrom(u.Old)
	if (u.Old.Spec.Removal == nil) != (u.New.Spec.Removal == nil) {
		// A mark stands for what was seen. Everything else is written by this
		// controller alone, and an agent's report is no reason to do it twice.
		patch = client.MergeFromWithOptions(u.Old, client.MergeFromWithOptimisticLock{})
	}
	if err := client.IgnoreNotFound(c.Client.Patch(ctx, u.New, patch)); err != nil {
		return fmt.Errorf("update the deployment in %s: %w", u.New.Namespace, err)
	}
	return nil
}

// release deletes a deployment that its agent has removed from the cluster.
func (c *Controller) release(ctx context.Context, d *fleet.BundleDeployment) error {
	base := d.DeepCopy()
	if controllerutil.RemoveFinalizer(d, fleet.Finalizer) {
		if err := c.Client.Patch(ctx, d, client.MergeFrom(base)); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return client.IgnoreNotFound(c.Client.Delete(ctx, d))
}
