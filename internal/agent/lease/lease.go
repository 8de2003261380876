// Package lease sees to it that one agent acts on a cluster. Agents hold a
// Lease in their namespace of that cluster: one has it and acts, any other
// stands by. An agent that cannot renew its Lease writes nothing until it can.
package lease

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/flotilla-sh/flotilla/internal/backoff"
)

const (
	// Name is the name of the Lease.
	Name = "flotilla-agent-holder"

	// renewEvery is how often the holder renews, give or take a tenth.
	renewEvery = time.Minute
	// actsFor is how long a holder writes after its last renewal, and
	// expiresAfter how long nobody else takes the Lease.
	actsFor      = 2 * time.Minute
	expiresAfter = 150 * time.Second
	// standBy is how often another agent looks whether the Lease is free.
	standBy = 5 * time.Second
	// releaseTimeout bounds the last request of an agent that ends.
	releaseTimeout = 5 * time.Second
)

// retry is when a request that failed is tried again.
var retry = backoff.Backoff{Min: 2 * time.Second, Max: 30 * time.Second, Jitter: 0.5}

// Leases reads and writes Leases of one namespace.
type Leases interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error)
	Create(ctx context.Context, l *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error)
	Update(ctx context.Context, l *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error)
}

// Options are what a holder is made from.
type Options struct {
	Leases Leases
	// Prepare makes the namespace of the Lease.
	Prepare func(ctx context.Context) error
	// Identity names this agent.
	Identity string
	// Former tells whether a holder is an earlier life of this agent, which
	// has certainly ended; nil knows of none but those of the same identity.
	Former func(holder string) bool
	Clock  clock.Clock
}

// Holder holds the Lease, or stands by.
type Holder struct {
	Options

	mu sync.Mutex
	// lease is the Lease as this agent wrote it last, at renewed; nil where
	// it does not hold it.
	lease   *coordinationv1.Lease
	renewed time.Time
}

// New returns a holder that does not hold the Lease yet.
func New(o Options) *Holder { return &Holder{Options: o} }

// Hold runs work whenever this agent has the Lease, until ctx ends or work
// does. Once work has ended, the Lease is given back.
func (h *Holder) Hold(ctx context.Context, work func(ctx context.Context) error) error {
	for {
		if !h.acquire(ctx) {
			return nil
		}
		lost, err := h.act(ctx, work)
		if !lost {
			h.release(ctx)
			return err
		}
	}
}

// act works and renews until one of the two ends, and tells whether the Lease was
// lost: to another agent, or with what the cluster knew.
func (h *Holder) act(ctx context.Context, work func(ctx context.Context) error) (lost bool, err error) {
	working, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- work(working) }()
	taken := make(chan struct{})
	go h.renew(working, taken)
	select {
	case err := <-done:
		return false, err
	case <-taken:
		stop()
		return ctx.Err() == nil, <-done
	}
}

// acquire waits until this agent has the Lease; it has not where ctx ended
// before.
func (h *Holder) acquire(ctx context.Context) bool {
	log := logr.FromContextOrDiscard(ctx)
	var seen sight
	said, failures := "", 0
	for {
		decision, err := h.try(ctx, &seen)
		switch {
		case err != nil && ctx.Err() == nil:
			log.Info("could not ask for the Lease of this cluster's agent; trying again", "error", err.Error())
			failures++
		case decision == held:
			return true
		case said != seen.holder:
			log.Info("another agent acts for this cluster; this one stands by and does nothing", "holder", seen.holder)
			said, failures = seen.holder, 0
		}
		after := backoff.Spread(standBy, 0.5, rand.Float64)
		if err != nil {
			after = retry.After(failures, rand.Float64)
		}
		select {
		case <-ctx.Done():
			return false
		case <-h.Clock.After(after):
		}
	}
}

// try takes the Lease where it may be taken.
func (h *Holder) try(ctx context.Context, seen *sight) (verdict, error) {
	live, err := h.Leases.Get(ctx, Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if err := h.Prepare(ctx); err != nil {
			return taken, err
		}
		return h.wrote(h.Leases.Create(ctx, h.filled(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: Name}}), metav1.CreateOptions{}))
	}
	if err != nil {
		return taken, err
	}
	*seen = seen.next(live, h.Clock.Now())
	if judge(*seen, h.ours(seen.holder), h.Clock.Now()) == taken {
		return taken, nil
	}
	return h.wrote(h.Leases.Update(ctx, h.filled(live), metav1.UpdateOptions{}))
}

// wrote notes a renewal; a conflict means that somebody was faster.
func (h *Holder) wrote(lease *coordinationv1.Lease, err error) (verdict, error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return taken, nil
	}
	if err != nil {
		return taken, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lease, h.renewed = lease, h.Clock.Now()
	return held, nil
}

// filled returns the Lease as this agent writes it.
func (h *Holder) filled(lease *coordinationv1.Lease) *coordinationv1.Lease {
	lease = lease.DeepCopy()
	now := metav1.NewMicroTime(h.Clock.Now())
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != h.Identity {
		lease.Spec.AcquireTime = &now
		lease.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, -1) + 1)
	}
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = &h.Identity, &now
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(expiresAfter / time.Second))
	return lease
}

func (h *Holder) ours(holder string) bool {
	return holder == h.Identity || h.Former != nil && h.Former(holder)
}

// renew keeps the Lease until ctx ends, or another agent has taken it.
func (h *Holder) renew(ctx context.Context, lost chan<- struct{}) {
	log := logr.FromContextOrDiscard(ctx)
	pause, failures := renewal(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.Clock.After(pause):
		}
		still, err := h.again(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			log.Info("could not renew the Lease of this cluster's agent; trying again", "error", err.Error())
			failures++
			pause = retry.After(failures, rand.Float64)
		case !still:
			close(lost)
			return
		default:
			pause, failures = renewal(), 0
		}
	}
}

// renewal is when to renew next.
func renewal() time.Duration { return backoff.Spread(renewEvery*9/10, 0.2, rand.Float64) }

// again renews the Lease, and tells whether this agent still has it.
func (h *Holder) again(ctx context.Context) (bool, error) {
	h.mu.Lock()
	lease := h.lease
	h.mu.Unlock()
	decision, err := h.wrote(h.Leases.Update(ctx, h.filled(lease), metav1.UpdateOptions{}))
	if err == nil && decision == held {
		return true, nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return false, err
	}
	// Somebody wrote or deleted it, which need not be another agent.
	var seen sight
	decision, err = h.try(ctx, &seen)
	switch {
	case err != nil:
		return false, err
	case !follows(seen, lease):
		logr.FromContextOrDiscard(ctx).Info("this cluster has lost what was written to it, as after a restored backup; beginning anew with what it has")
		return false, nil
	case decision == held:
		return true, nil
	case h.ours(seen.holder):
		return false, fmt.Errorf("the Lease changed while it was renewed")
	}
	logr.FromContextOrDiscard(ctx).Info("another agent has taken over this cluster; this one stops what it does", "holder", seen.holder)
	return false, nil
}

// release gives the Lease back, so that another agent need not wait.
func (h *Holder) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	h.mu.Lock()
	lease := h.lease.DeepCopy()
	h.lease = nil
	h.mu.Unlock()
	lease.Spec.HolderIdentity = ptr.To("")
	if _, err := h.Leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
		logr.FromContextOrDiscard(ctx).Info("could not give the Lease of this cluster's agent back", "error", err.Error())
	}
}
