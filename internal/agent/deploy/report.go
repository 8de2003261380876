package deploy

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/flotilla-sh/flotilla/internal/status"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// reportRetryMin and reportRetryMax bound the wait before a report that did
// not reach the hub is tried again.
const (
	reportRetryMin = 2 * time.Second
	reportRetryMax = time.Minute
)

// unreported counts a report that did not reach the hub, and returns when to
// try again.
func (c *Controller) unreported(name string) time.Duration {
	var pause time.Duration
	c.update(name, func(j *job) {
		j.unreported++
		pause = min(reportRetryMin<<min(j.unreported-1, 10), reportRetryMax)
	})
	return wait.Jitter(pause, 0.5)
}

// report writes the status of a deployment to the hub where it has changed.
func (c *Controller) report(ctx context.Context, j job, d Decision) error {
	s, err := j.statusOf(d, c.clock.Now())
	if err != nil {
		return err
	}
	patch, now, err := statusPatch(j.reported, s)
	if err != nil || patch == nil {
		return err
	}
	version, err := c.hub.PatchStatus(ctx, j.name, patch)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	c.update(j.name, func(live *job) {
		if !olderVersion(version, live.statusVersion) {
			live.reported, live.statusVersion, live.unreported = now, version, 0
		}
	})
	c.wakeDependents(j)
	return nil
}

// wakeDependents visits deployments that may have waited for j.
func (c *Controller) wakeDependents(j job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, other := range c.jobs {
		if name != j.name && other.desired != nil && len(other.desired.Spec.DependsOn) > 0 {
			c.queue.Add(name)
		}
	}
}

// blocked returns the dependencies of a job that are not in an accepted state.
// The caller holds the lock.
func (c *Controller) blocked(j *job) []string {
	if j.desired == nil {
		return nil
	}
	var out []string
	for _, dep := range j.desired.Spec.DependsOn {
		out = append(out, c.unmet(dep)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// unmet returns what is missing for one dependency.
func (c *Controller) unmet(dep fleet.BundleRef) []string {
	selector, err := metav1.LabelSelectorAsSelector(dep.Selector)
	if err != nil {
		return []string{"invalid selector: " + err.Error()}
	}
	var out []string
	found := false
	for _, other := range c.jobs {
		if !refersTo(dep, selector, other) {
			continue
		}
		found = true
		if !accepted(dep, other) {
			out = append(out, other.name)
		}
	}
	if !found {
		return []string{missingDependency(dep)}
	}
	return out
}

func missingDependency(dep fleet.BundleRef) string {
	if dep.Name != "" {
		return dep.Name + " (not on this cluster)"
	}
	return metav1.FormatLabelSelector(dep.Selector) + " (nothing on this cluster matches)"
}

func refersTo(dep fleet.BundleRef, selector labels.Selector, other *job) bool {
	if other.desired == nil {
		return false
	}
	name, _ := bundleOf(other.desired)
	if dep.Name != "" && dep.Name != name {
		return false
	}
	return dep.Name != "" && dep.Selector == nil || selector.Matches(labels.Set(other.desired.Labels))
}

func accepted(dep fleet.BundleRef, other *job) bool {
	states := dep.AcceptedStates
	if len(states) == 0 {
		states = []fleet.BundleState{fleet.Ready}
	}
	s, err := other.statusOf(Decision{}, time.Time{})
	if err != nil {
		return false
	}
	return slices.Contains(states, status.StateOf(&fleet.BundleDeployment{Spec: other.desired.Spec, Status: s}))
}
