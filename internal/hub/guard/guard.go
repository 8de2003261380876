// Package guard sees to it that one hub acts on an API server: it holds a Lease
// for as long as it runs, refuses to start beside another hub or beside Rancher
// Fleet's controller, and stops when it loses the Lease.
package guard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// LeaseName is the name of the hub's Lease.
	LeaseName = "flotilla-hub"
	// renewEvery is how often the Lease is renewed.
	renewEvery = 5 * time.Second
	// expiresAfter is how long a Lease that is not renewed counts.
	expiresAfter = 15 * time.Second
	// rancherController is the Deployment of Rancher Fleet's controller.
	rancherController = "fleet-controller"
)

// ErrLost says that another hub took the Lease.
var ErrLost = errors.New("another hub has taken over; this one stops")

// Guard holds the Lease.
type Guard struct {
	// Client reads and writes past all caches.
	Client client.Client
	// Namespace of the Lease.
	Namespace string
	// Identity of this hub. A hub that is started again with the identity of
	// one that was killed goes on at once.
	Identity string
	Clock    clock.WithTicker

	mu sync.Mutex
	// since is the begin of the unbroken series of renewals.
	since time.Time
	// held is set once this hub had the Lease; a gap does not unset it.
	held bool
	// last is the Lease as this hub wrote it last; nil where that is not known.
	last *coordinationv1.Lease
}

// Since returns since when the API server has been in reach without a gap.
func (g *Guard) Since() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.since.IsZero() {
		return g.Clock.Now()
	}
	return g.since
}

// Acquire takes the Lease, or says who has it. It waits as long as it takes to
// see whether a Lease of somebody else is still renewed.
func (g *Guard) Acquire(ctx context.Context) error {
	if err := g.refuseRancherFleet(ctx); err != nil {
		return err
	}
	lease, err := g.get(ctx)
	if err != nil {
		return err
	}
	if lease != nil && holder(lease) != "" && holder(lease) != g.Identity {
		if err := g.watchOther(ctx, lease); err != nil {
			return err
		}
	}
	return g.renew(ctx)
}

func (g *Guard) refuseRancherFleet(ctx context.Context) error {
	list := &appsv1.DeploymentList{}
	if err := g.Client.List(ctx, list); err != nil {
		return fmt.Errorf("look for Rancher Fleet's controller: %w", err)
	}
	for i := range list.Items {
		d := &list.Items[i]
		if d.Name == rancherController && ptr.Deref(d.Spec.Replicas, 1) > 0 {
			return fmt.Errorf("the controller of Rancher Fleet runs here (deployment %s/%s), and two controllers for one API would undo each other's work; "+
				"to move over, scale it down: kubectl -n %s scale deployment %s --replicas=0", d.Namespace, d.Name, d.Namespace, d.Name)
		}
	}
	return nil
}

// watchOther returns an error if the Lease of another hub moves within the time
// after which it would have expired.
func (g *Guard) watchOther(ctx context.Context, lease *coordinationv1.Lease) error {
	log.FromContext(ctx).Info("waiting to see whether the other hub is alive", "holder", holder(lease))
	seen := lease.Spec.RenewTime
	deadline := g.Clock.Now().Add(expiresAfter)
	ticker := g.Clock.NewTicker(time.Second)
	defer ticker.Stop()
	for g.Clock.Now().Before(deadline) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C():
		}
		now, err := g.get(ctx)
		if err != nil {
			return err
		}
		if now == nil || holder(now) == "" {
			return nil
		}
		if !now.Spec.RenewTime.Equal(seen) {
			return fmt.Errorf("another hub is active on this API server: %q renewed the lease %s/%s at %s; "+
				"stop it first, a second hub would undo its work", holder(now), g.Namespace, LeaseName, now.Spec.RenewTime.Format(time.RFC3339))
		}
	}
	return nil
}

// Run renews the Lease until ctx ends and gives it back then. It returns
// ErrLost when another hub has it.
func (g *Guard) Run(ctx context.Context) error {
	ticker := g.Clock.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return g.giveBack()
		case <-ticker.C():
		}
		err := g.renew(ctx)
		if errors.Is(err, ErrLost) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Info("the API server is out of reach", "error", err.Error())
		}
	}
}

// renew writes the Lease and keeps account of gaps.
func (g *Guard) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewEvery)
	defer cancel()
	err := g.write(ctx, g.Identity)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case err != nil:
		g.since = time.Time{}
	case g.since.IsZero():
		g.since, g.held = g.Clock.Now(), true
	}
	return err
}

// write writes the Lease: as it was written last, or, where somebody else has
// written since, as it is now.
func (g *Guard) write(ctx context.Context, identity string) error {
	if g.last != nil {
		err := g.update(ctx, g.last, identity)
		if !apierrors.IsConflict(err) {
			return err
		}
	}
	lease, err := g.get(ctx)
	if err != nil {
		return err
	}
	if lease == nil {
		return g.Client.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: LeaseName}, Spec: g.spec(identity),
		})
	}
	if g.acquired() && holder(lease) != g.Identity && holder(lease) != "" {
		return fmt.Errorf("%w (%q)", ErrLost, holder(lease))
	}
	return g.update(ctx, lease, identity)
}

func (g *Guard) update(ctx context.Context, lease *coordinationv1.Lease, identity string) error {
	g.last = nil
	lease.Spec = g.spec(identity)
	err := g.Client.Update(ctx, lease)
	if err == nil {
		g.last = lease
	}
	return err
}

func (g *Guard) spec(identity string) coordinationv1.LeaseSpec {
	now := metav1.NewMicroTime(g.Clock.Now())
	return coordinationv1.LeaseSpec{
		HolderIdentity: &identity, RenewTime: &now, LeaseDurationSeconds: ptr.To(int32(expiresAfter / time.Second)),
	}
}

func (g *Guard) acquired() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held
}

func (g *Guard) giveBack() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := g.write(ctx, ""); err != nil && !errors.Is(err, ErrLost) {
		return fmt.Errorf("give the lease back: %w", err)
	}
	return nil
}

func (g *Guard) get(ctx context.Context) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := g.Client.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: LeaseName}, lease)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the lease %s/%s: %w", g.Namespace, LeaseName, err)
	}
	return lease, nil
}

func holder(lease *coordinationv1.Lease) string {
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}
