package hubtest_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/hub/guard"
)

func (w *world) guard(identity string) *guard.Guard {
	return &guard.Guard{Client: w.client, Namespace: w.namespace, Identity: identity, Clock: w.clock}
}

// holder returns who has the Lease.
func (w *world) holder() string {
	w.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: w.meta(guard.LeaseName)}
	if !w.exists(lease) {
		return ""
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// renewed is a heartbeat of the hub that has the Lease.
func (w *world) renewed() {
	w.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: w.meta(guard.LeaseName)}
	w.exists(lease)
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(lease.Spec.RenewTime.Add(5 * time.Second)))
	w.must(w.client.Update(w.ctx, lease))
}

// begin runs f and returns once it waits for the clock.
func (w *world) begin(f func() error) <-chan error {
	w.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	w.must(poll(func() (bool, error) { return w.clock.HasWaiters() || len(done) > 0, nil }))
	return done
}

func TestGuardAcquire(t *testing.T) {
	for name, tt := range map[string]struct {
		before func(*world)
		// while is what happens as the hub waits to see who is alive.
		while func(*world)
		err   string
	}{
		"nobody": {},
		"same identity, killed before": {
			before: func(w *world) { w.must(w.guard("hub-a").Acquire(w.ctx)) },
		},
		"another one, alive": {
			before: func(w *world) { w.must(w.guard("hub-b").Acquire(w.ctx)) },
			while:  func(w *world) { w.renewed(); w.clock.Step(time.Second) },
			err:    `another hub is active on this API server: "hub-b"`,
		},
		"another one, dead": {
			before: func(w *world) { w.must(w.guard("hub-b").Acquire(w.ctx)) },
			while:  func(w *world) { w.clock.Step(15 * time.Second) },
		},
		"another one that ended": {
			before: func(w *world) {
				b := w.guard("hub-b")
				w.must(b.Acquire(w.ctx))
				ctx, cancel := context.WithCancel(w.ctx)
				cancel()
				w.must(b.Run(ctx))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tt.before != nil {
				tt.before(w)
			}
			done := w.begin(func() error { return w.guard("hub-a").Acquire(w.ctx) })
			if tt.while != nil {
				tt.while(w)
			}
			err := <-done
			if tt.err == "" {
				if err != nil || w.holder() != "hub-a" {
					t.Errorf("got %v, the Lease is of %q; want it", err, w.holder())
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), tt.err) || w.holder() != "hub-b" {
				t.Errorf("got %v, the Lease is of %q; want: %s", err, w.holder(), tt.err)
			}
		})
	}
}

func TestGuardRefusesRancherFleet(t *testing.T) {
	w := newWorld(t)
	labels := map[string]string{"app": "fleet-controller"}
	rancher := &appsv1.Deployment{ObjectMeta: w.meta("fleet-controller"), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "fleet"}}},
		},
	}}
	w.create(rancher)
	t.Cleanup(func() { w.must(w.client.Delete(context.Background(), rancher)) })
	err := w.guard("hub-a").Acquire(w.ctx)
	want := "kubectl -n " + w.namespace + " scale deployment fleet-controller --replicas=0"
	if err == nil || !strings.Contains(err.Error(), want) || w.holder() != "" {
		t.Errorf("got %v, want it to say: %s", err, want)
	}
	rancher.Spec.Replicas = ptr.To(int32(0))
	w.must(w.client.Update(w.ctx, rancher))
	w.must(w.guard("hub-a").Acquire(w.ctx))
}

func TestGuardStopsWhenItLostTheLease(t *testing.T) {
	for name, away := range map[string]bool{"taken while it slept": false, "taken while its API server was away": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.guard("hub-a")
			network := &cable{Client: w.client}
			a.Client = network
			w.must(a.Acquire(w.ctx))
			done := w.begin(func() error { return a.Run(w.ctx) })
			network.cut.Store(away)
			if away {
				w.clock.Step(5 * time.Second)
				w.must(poll(func() (bool, error) { return a.Since().Equal(w.clock.Now()), nil }))
				w.clock.Step(time.Minute)
			}
			w.take("hub-b")
			network.cut.Store(false)
			w.must(poll(func() (bool, error) {
				w.clock.Step(5 * time.Second)
				return len(done) > 0, nil
			}))
			if err := <-done; !errors.Is(err, guard.ErrLost) || !strings.Contains(err.Error(), "hub-b") {
				t.Errorf("got %v, want that hub-b took over", err)
			}
			if w.holder() != "hub-b" {
				t.Errorf("the Lease is of %q, want hub-b", w.holder())
			}
		})
	}
}

func (w *world) take(identity string) {
	w.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: w.meta(guard.LeaseName)}
	w.exists(lease)
	lease.Spec.HolderIdentity = &identity
	w.must(w.client.Update(w.ctx, lease))
}

// cable is a client whose reads fail while it is cut.
type cable struct {
	client.Client
	cut atomic.Bool
}

func (c *cable) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if c.cut.Load() {
		return errors.New("no route to host")
	}
	return c.Client.Get(ctx, key, obj, opts...)
}
