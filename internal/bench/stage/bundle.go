package stage

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Bundle is something to deploy: files, and the clusters that get them.
type Bundle struct {
	Name string
	// Files are paths and contents.
	Files map[string]string
	// Clusters selects by label; nil is all.
	Clusters map[string]string
}

// ConfigMap is a file with one small object.
func ConfigMap(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  namespace: default\ndata:\n  value: %q\n", name, value)
}

// resources are the files as a Bundle carries them.
func (b Bundle) resources() []fleet.BundleResource {
	var out []fleet.BundleResource
	for name, text := range b.Files {
		out = append(out, fleet.BundleResource{Name: name, Content: text})
	}
	return out
}

// Create makes a Bundle.
func (s *Stage) Create(ctx context.Context, b Bundle) error {
	bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: b.Name}}
	bundle.Spec.Resources = b.resources()
	bundle.Spec.Targets = []fleet.BundleTarget{{
		Name: "all", ClusterSelector: &metav1.LabelSelector{MatchLabels: b.Clusters},
	}}
	return s.Hub.Create(ctx, bundle)
}

// Update gives a Bundle other files.
func (s *Stage) Update(ctx context.Context, b Bundle) error {
	bundle := &fleet.Bundle{}
	if err := s.Hub.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: b.Name}, bundle); err != nil {
		return err
	}
	base := bundle.DeepCopy()
	bundle.Spec.Resources = b.resources()
	return s.Hub.Patch(ctx, bundle, client.MergeFrom(base))
}

// Want is the number of clusters that each of some bundles goes to.
type Want map[string]int

// pairs is the number of deployments that this makes.
func (w Want) pairs() int {
	n := 0
	for _, clusters := range w {
		n += clusters
	}
	return n
}

// AwaitReady waits until the roll-up of every Bundle says that all of its
// deployments run its newest generation, and returns when that was. That the
// deployments themselves say so too is checked afterwards.
func (s *Stage) AwaitReady(ctx context.Context, want Want) (time.Time, error) {
	ctx, cancel := within(ctx, fmt.Sprintf("%d deployments of %d bundles ready", want.pairs(), len(want)))
	defer cancel()
	for {
		if err := s.watchReady(ctx, want); err != nil {
			return time.Time{}, err
		}
		at := time.Now()
		err := s.verify(ctx, want)
		if err == nil {
			return at, nil
		}
		s.options.Log("the roll-up says Ready too early: %v", err)
		select {
		case <-ctx.Done():
			return at, context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// watchReady returns when the bundles say that they are ready.
func (s *Stage) watchReady(ctx context.Context, want Want) error {
	ready := map[string]bool{}
	last := "nothing was seen of them"
	for {
		w, err := s.Hub.Watch(ctx, &fleet.BundleList{}, client.InNamespace(Namespace))
		if err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		done := follow(w, func(b *fleet.Bundle) bool {
			clusters, ours := want[b.Name]
			if !ours {
				return false
			}
			if delete(ready, b.Name); isReady(b, clusters) {
				ready[b.Name] = true
			}
			last = fmt.Sprintf("%s has %d of %d ready", b.Name, b.Status.Summary.Ready, b.Status.Summary.DesiredReady)
			return len(ready) == len(want)
		})
		if done {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %s", context.Cause(ctx), last)
		}
	}
}

// follow gives bundles to see until it returns true or the watch ends.
func follow(w watch.Interface, see func(*fleet.Bundle) bool) bool {
	defer w.Stop()
	for event := range w.ResultChan() {
		if b, ok := event.Object.(*fleet.Bundle); ok && see(b) {
			return true
		}
	}
	return false
}

func isReady(b *fleet.Bundle, clusters int) bool {
	return b.Status.ObservedGeneration == b.Generation && b.Status.Summary.Ready == clusters &&
		b.Status.Summary.DesiredReady == clusters && fleet.IsConditionTrue(b.Status.Conditions, fleet.ConditionReady)
}

// verify reads the deployments.
func (s *Stage) verify(ctx context.Context, want Want) error {
	list := &fleet.BundleDeploymentList{}
	if err := s.Hub.List(ctx, list); err != nil {
		return err
	}
	n := 0
	for i := range list.Items {
		d := &list.Items[i]
		if _, ours := want[d.Labels[fleet.BundleLabel]]; !ours {
			continue
		}
		n++
		if d.Status.AppliedDeploymentID != d.Spec.DeploymentID || !d.Status.Ready {
			return fmt.Errorf("deployment %s/%s has applied %q, wants %q", d.Namespace, d.Name, d.Status.AppliedDeploymentID, d.Spec.DeploymentID)
		}
	}
	if n != want.pairs() {
		return fmt.Errorf("there are %d deployments, want %d", n, want.pairs())
	}
	return nil
}
