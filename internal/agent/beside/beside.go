// Package beside sees whether an agent of Rancher Fleet is at work on the same
// cluster: two agents would undo each other's work.
package beside

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/flotilla-sh/flotilla/internal/backoff"
)

const (
	// rancherAgent is the name of Rancher Fleet's agent.
	rancherAgent = "fleet-agent"
	// every is how often it is looked for, and soon how often while it is there.
	every = time.Minute
	soon  = 10 * time.Second
)

// Namespaces are those in which Rancher Fleet runs its agents.
func Namespaces() []string { return []string{"cattle-fleet-system", "cattle-fleet-local-system"} }

// Watcher looks for the agent of Rancher Fleet.
type Watcher struct {
	// Objects reads the cluster.
	Objects dynamic.Interface
	// Namespaces are those to look in; where there are none, nothing is found.
	Namespaces []string
	// Tell is called with why nothing may be done, and with "" where that has
	// passed.
	Tell  func(why string)
	Clock clock.Clock

	said string
}

// Run looks until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	for len(w.Namespaces) > 0 {
		pause := every
		if w.said != "" {
			pause = soon
		}
		select {
		case <-ctx.Done():
			return
		case <-w.Clock.After(backoff.Spread(pause, 0.2, rand.Float64)):
		}
		if err := w.Look(ctx); err != nil && ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).V(1).Info("looking again later", "error", err.Error())
		}
	}
}

// Look looks once, and tells what has changed.
func (w *Watcher) Look(ctx context.Context) error {
	why, err := w.find(ctx)
	if err != nil || why == w.said {
		return err
	}
	w.said = why
	tell(ctx, why)
	w.Tell(why)
	return nil
}

func tell(ctx context.Context, why string) {
	if why == "" {
		logr.FromContextOrDiscard(ctx).Info("the agent of Rancher Fleet is not active any more: going on")
		return
	}
	logr.FromContextOrDiscard(ctx).Info("nothing is applied or removed", "reason", why)
}

// find says which agent of Rancher Fleet is active and what to do, or "".
func (w *Watcher) find(ctx context.Context) (string, error) {
	for _, namespace := range w.Namespaces {
		for _, resource := range []string{"deployments", "statefulsets"} {
			at := w.Objects.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: resource}).Namespace(namespace)
			live, err := at.Get(ctx, rancherAgent, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
				continue
			case err != nil:
				return "", fmt.Errorf("look for the agent of Rancher Fleet in %s: %w", namespace, err)
			}
			if ready, _, _ := unstructured.NestedInt64(live.Object, "status", "readyReplicas"); ready > 0 {
				return refusal(namespace, strings.TrimSuffix(resource, "s")), nil
			}
		}
	}
	return "", nil
}

func refusal(namespace, kind string) string {
	return fmt.Sprintf("the agent of Rancher Fleet runs on this cluster (%[1]s %[2]s/%[3]s), and two agents for one cluster would undo each other's work; "+
		"to move over, scale it down: kubectl -n %[2]s scale %[1]s %[3]s --replicas=0; or start this agent with --beside-rancher-fleet", kind, namespace, rancherAgent)
}
