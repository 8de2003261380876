package hub

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// watchTimeout is the least time that a watch stays open; the reflector adds
// up to as much again at random, so that a fleet does not come back at once.
const watchTimeout = 8 * time.Minute

// reconnect is how long to wait while the hub does not answer. Each wait is up to
// twice as long at random: a fleet that meets a hub that is back comes spread
// out, and all of it within a minute.
func reconnect() *wait.Backoff {
	return &wait.Backoff{Duration: 800 * time.Millisecond, Cap: 20 * time.Second, Steps: 25, Factor: 2, Jitter: 1}
}

// Inbox takes in what the hub says.
type Inbox interface {
	// Received is called for a deployment that is new or has changed.
	Received(bd *fleet.BundleDeployment)
	// Vanished is called for a deployment that the hub does not have any more.
	Vanished(name string)
	// Listed is called after a full list, with the names on it.
	Listed(names map[string]bool)
	// Anew is called before all is told anew because the hub has lost what it
	// knew, as after a restored backup: versions begin again at a lower number.
	Anew()
}

// Watch keeps in informed of the deployments of the cluster until ctx ends. It
// resumes where it was, and backs off while the hub does not answer. A hub that
// has lost what it knew is asked for everything: where the watch was, it would
// tell nothing until it has come as far again.
func (c *Client) Watch(ctx context.Context, in Inbox) {
	for {
		c.watch(ctx, in)
		if ctx.Err() != nil {
			return
		}
		in.Anew()
	}
}

// watch lists and watches until ctx ends or the hub has lost what it knew.
func (c *Client) watch(ctx context.Context, in Inbox) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-ctx.Done():
		case <-c.lost:
			stop()
		}
	}()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := &fleet.BundleDeploymentList{}
			err := c.deployments().VersionedParams(&o, c.codec).Do(ctx).Into(list)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.Watch = true
			return c.deployments().VersionedParams(&o, c.codec).Watch(ctx)
		},
	}
	r := cache.NewReflectorWithOptions(lw, &fleet.BundleDeployment{}, sink{in},
		cache.ReflectorOptions{Name: "deployments", MinWatchTimeout: watchTimeout, Backoff: reconnect()})
	r.RunWithContext(ctx)
}

func (c *Client) deployments() *rest.Request {
	return c.rest.Get().Namespace(c.namespace).Resource("bundledeployments")
}

// sink passes on what the reflector sees; it keeps nothing.
type sink struct{ in Inbox }

// Add takes in a new deployment.
func (s sink) Add(obj any) error {
	if bd, ok := obj.(*fleet.BundleDeployment); ok {
		s.in.Received(bd)
	}
	return nil
}

// Update takes in a changed deployment.
func (s sink) Update(obj any) error { return s.Add(obj) }

// Delete takes in that a deployment is gone.
func (s sink) Delete(obj any) error {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if bd, ok := obj.(*fleet.BundleDeployment); ok {
		s.in.Vanished(bd.Name)
	}
	return nil
}

// Replace takes in a new list.
func (s sink) Replace(list []any, _ string) error {
	names := make(map[string]bool, len(list))
	for _, obj := range list {
		if bd, ok := obj.(*fleet.BundleDeployment); ok {
			names[bd.Name] = true
			s.in.Received(bd)
		}
	}
	s.in.Listed(names)
	return nil
}

// Resync does nothing.
func (s sink) Resync() error { return nil }
