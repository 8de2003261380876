package deploy

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flotilla-sh/flotilla/internal/status"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// neighbour is a deployment of this cluster as others depend on it.
type neighbour struct {
	// name is the deployment's; bundle and namespace are its bundle's.
	name, bundle, namespace string
	labels                  map[string]string
	// leaving is true where it is to be removed.
	leaving   bool
	dependsOn []fleet.BundleRef
	// state is asked for only where it matters.
	state func() fleet.BundleState
}

// unmet returns which dependencies of self are not in an accepted state.
func unmet(self neighbour, all []neighbour) []string {
	var out []string
	for _, dep := range self.dependsOn {
		selector, err := metav1.LabelSelectorAsSelector(dep.Selector)
		if err != nil {
			out = append(out, "invalid selector: "+err.Error())
			continue
		}
		found := false
		for _, other := range all {
			if !refersTo(dep, selector, self, other) {
				continue
			}
			found = true
			if !accepted(dep, other) {
				out = append(out, other.name)
			}
		}
		if !found {
			out = append(out, missingDependency(dep))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// refersTo tells whether self means other by dep. A bundle never waits for
// itself, nor for one of another namespace of the hub.
func refersTo(dep fleet.BundleRef, selector labels.Selector, self, other neighbour) bool {
	if other.name == self.name || other.namespace != self.namespace || dep.Name != "" && dep.Name != other.bundle {
		return false
	}
	return dep.Name != "" && dep.Selector == nil || selector.Matches(labels.Set(other.labels))
}

func accepted(dep fleet.BundleRef, other neighbour) bool {
	states := dep.AcceptedStates
	if len(states) == 0 {
		states = []fleet.BundleState{fleet.Ready}
	}
	return !other.leaving && slices.Contains(states, other.state())
}

func missingDependency(dep fleet.BundleRef) string {
	if dep.Name != "" {
		return dep.Name + " (not on this cluster)"
	}
	return metav1.FormatLabelSelector(dep.Selector) + " (nothing on this cluster matches)"
}

// dependents returns the deployments that depend on self and are to be removed
// as well: they go first. Those that self depends on in turn are left out, so
// that a circle does not wait for ever.
func dependents(self neighbour, all []neighbour) []string {
	leaving := slices.DeleteFunc(slices.Clone(all), func(n neighbour) bool { return !n.leaving })
	needed := reach(self, append(leaving, self))
	var out []string
	for _, other := range leaving {
		if other.name != self.name && depends(other, self) && !needed[other.name] {
			out = append(out, other.name)
		}
	}
	slices.Sort(out)
	return out
}

// depends tells whether one deployment means another by one of its
// dependencies.
func depends(one, another neighbour) bool {
	return slices.ContainsFunc(one.dependsOn, func(dep fleet.BundleRef) bool {
		selector, err := metav1.LabelSelectorAsSelector(dep.Selector)
		return err == nil && refersTo(dep, selector, one, another)
	})
}

// reach returns everything that a deployment depends on, directly or not.
func reach(from neighbour, all []neighbour) map[string]bool {
	seen := map[string]bool{}
	next := []neighbour{from}
	for len(next) > 0 {
		one := next[0]
		next = next[1:]
		for _, other := range all {
			if !seen[other.name] && depends(one, other) {
				seen[other.name] = true
				next = append(next, other)
			}
		}
	}
	return seen
}

// neighbour returns a job as others see it.
func (j *job) neighbour() neighbour {
	want := j.want()
	bundle, namespace := bundleOf(want)
	return neighbour{
		name: j.name, bundle: bundle, namespace: namespace, labels: want.Labels,
		leaving: j.leaves(), dependsOn: want.Spec.DependsOn,
		state: j.state,
	}
}

// state is the state in which a job stands now.
func (j *job) state() fleet.BundleState {
	s, err := j.statusOf(Decision{}, time.Time{})
	if err != nil {
		return fleet.WaitApplied
	}
	return status.StateOf(&fleet.BundleDeployment{Spec: j.want().Spec, Status: s})
}

// dependencies returns what a job waits for: before it is deployed, and before
// it is removed. The caller holds the lock.
func (c *Controller) dependencies(j *job) (blocked, before []string) {
	self := j.neighbour()
	if len(self.dependsOn) == 0 && !self.leaving {
		return nil, nil
	}
	all := make([]neighbour, 0, len(c.jobs))
	for _, other := range c.jobs {
		if other.desired == nil && other.record == nil {
			continue
		}
		if self.leaving && other.record == nil {
			continue // nothing of it is on the cluster
		}
		all = append(all, other.neighbour())
	}
	if self.leaving {
		return nil, dependents(self, all)
	}
	return unmet(self, all), nil
}

// wakeDependents visits deployments that may have waited for another one.
func (c *Controller) wakeDependents(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other, j := range c.jobs {
		if other != name && (j.leaves() || len(j.want().Spec.DependsOn) > 0 && !j.finished()) {
			c.queue.Add(other)
		}
	}
}
