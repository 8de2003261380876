package deploy

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"

	"github.com/flotilla-sh/flotilla/internal/agent/state"
	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/fault"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// identityTimeout bounds the question who the hub is.
const identityTimeout = 10 * time.Second

// settling puts off what objects leave a deployment with.
type settling struct {
	// id is the deployment ID that it concerns.
	id    string
	until time.Time
}

// left is how long it is still to wait.
func (s settling) left(id string, now time.Time) time.Duration {
	if s.id != id {
		return 0
	}
	return max(0, s.until.Sub(now))
}

// settles puts a job off for a moment after its last change, where that moment
// is not over.
func (c *Controller) settles(j job) bool {
	until := j.arrived.Add(c.settle)
	if !c.clock.Now().Before(until) {
		return false
	}
	c.update(j.name, func(j *job) { j.settling = settling{id: j.attemptID(), until: until} })
	return true
}

// hubIdentity asks the hub who it is. A hub that does not answer is the one
// that it was.
func (c *Controller) hubIdentity(ctx context.Context, before string) string {
	ctx, cancel := context.WithTimeout(ctx, identityTimeout)
	defer cancel()
	id, err := c.hub.Identity(ctx)
	if err != nil || id == "" {
		return before
	}
	return id
}

// handing is what became of objects that leave a deployment.
type handing struct {
	// free are those that another deployment may take now.
	free []apply.Ref
	// undecided is why it is not known what others want; the rest is kept
	// until it is.
	undecided error
}

// handOver gives up those objects that leave a deployment and that another one
// wants, and wakes those that have asked for them.
func (c *Controller) handOver(ctx context.Context, r *state.Record, leaving []apply.Ref) (handing, error) {
	if len(leaving) == 0 {
		return handing{}, nil
	}
	name, owner := r.Name, r.Owner()
	engine, err := c.as(ctx, r.Options)
	if err != nil {
		return handing{}, err
	}
	others, undecided := c.claimants(ctx, name)
	wanted := claimed(leaving, others)
	free, err := engine.HandOver(ctx, owner, wanted)
	if len(free) > 0 {
		logr.FromContextOrDiscard(ctx).Info("handed over to other bundles", "deployment", name, "objects", len(free))
		c.wakeAskers(free)
	}
	return handing{free: free, undecided: undecided}, err
}

// claimant is a deployment of this cluster and what it wants to have there.
type claimant struct {
	name  string
	wants []apply.Ref
}

// claimed returns those of refs that a claimant wants.
func claimed(refs []apply.Ref, others []claimant) []apply.Ref {
	wanted := map[apply.Ref]bool{}
	for _, other := range others {
		for _, ref := range other.wants {
			wanted[ref.Identity()] = true
		}
	}
	var out []apply.Ref
	for _, ref := range refs {
		if wanted[ref.Identity()] {
			out = append(out, ref)
		}
	}
	return out
}

// claimants returns what the other deployments of this cluster have, are about
// to have and have asked for. The content of one whose deployment has not begun
// is read for that; the error names one whose content cannot be read. What cannot
// be rendered as it is takes nothing over, and must not hold up all others.
func (c *Controller) claimants(ctx context.Context, name string) (others []claimant, undecided error) {
	for _, other := range c.others(name) {
		found := claimant{name: other.name}
		if other.record != nil && !other.leaves() {
			found.wants = append(refsOf(other.record.Inventory), other.record.Asked...)
		}
		if other.unplanned() && !other.unplannable.holds(other.wantedID(), c.clock.Now()) {
			plan, err := c.plan(ctx, other)
			switch {
			case err == nil:
				found.wants = append(found.wants, plan.Wants()...)
			case fault.KindOf(err) == fault.Transient:
				undecided = fmt.Errorf("deployment %s may take it over, and its content cannot be read: %w", other.name, err)
				continue
			default:
				c.update(other.name, func(j *job) {
					j.unplannable = unplannable{id: other.wantedID(), until: c.clock.Now().Add(unplannableFor)}
				})
			}
		}
		others = append(others, found)
	}
	return others, undecided
}

// unplannableFor is how long it counts that a content could not be rendered: a
// render costs much, and many may ask.
const unplannableFor = time.Minute

// unplannable notes a deployment ID whose content cannot be rendered.
type unplannable struct {
	id    string
	until time.Time
}

// holds tells whether that is so of a deployment ID.
func (u unplannable) holds(id string, now time.Time) bool { return u.id == id && now.Before(u.until) }

// others returns all jobs but one.
func (c *Controller) others(name string) []job {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]job, 0, len(c.jobs))
	for _, j := range c.jobs {
		if j.name != name {
			out = append(out, *j)
		}
	}
	return out
}

// leaves tells whether a job is to be removed.
func (j *job) leaves() bool {
	return j.desired != nil && j.desired.Spec.Removal != nil || j.record != nil && j.record.Removing
}

// unplanned tells whether the hub wants something of which nothing is noted on
// this cluster yet.
func (j *job) unplanned() bool {
	d := j.desired
	if d == nil || j.leaves() || d.DeletionTimestamp != nil || d.Spec.Content == nil || d.Spec.DeploymentID == "" {
		return false
	}
	return j.record == nil || j.record.DeploymentID != d.Spec.DeploymentID
}

// wakeAskers lets deployments try again that have asked for these objects.
func (c *Controller) wakeAskers(free []apply.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.given++
	for name, j := range c.jobs {
		if j.record != nil && len(claimed(free, []claimant{{wants: j.record.Asked}})) > 0 {
			j.trouble.until = time.Time{}
			c.queue.Add(name)
		}
	}
}

// freed lets a deployment try again at once where an object that it was refused
// has been given up meanwhile; given is how often objects had been when it was
// tried.
func (c *Controller) freed(name string, failures []apply.Failure, given int) {
	var asked []asking
	for _, f := range failures {
		if bundle := apply.AskedOf(f); bundle != "" {
			asked = append(asked, asking{bundle, f.Ref})
		}
	}
	if mayBeFree(asked, c.givenUp() != given, c.abandoned) {
		c.update(name, func(j *job) { j.trouble.until = time.Time{} })
	}
}

// asking is an object that was refused because a bundle has it.
type asking struct {
	bundle string
	ref    apply.Ref
}

// mayBeFree tells whether one of the objects may be free by now: some were given
// up since, perhaps by a bundle that is gone, or its bundle has nothing to do
// with it.
func mayBeFree(asked []asking, given bool, abandoned func(string, apply.Ref) bool) bool {
	return slices.ContainsFunc(asked, func(a asking) bool { return given || abandoned(a.bundle, a.ref) })
}

// givenUp is how often objects were given up for other deployments.
func (c *Controller) givenUp() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.given
}

// abandoned tells whether a bundle is on this cluster and has nothing to do
// with an object that bears its mark.
func (c *Controller) abandoned(bundle string, ref apply.Ref) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range c.jobs {
		if j.record == nil || j.record.Owner().Bundle != bundle {
			continue
		}
		has := append(refsOf(j.record.Inventory), j.record.Asked...)
		return !j.unplanned() && len(claimed([]apply.Ref{ref}, []claimant{{wants: has}})) == 0
	}
	return false
}

// tenant returns another deployment's bundle that has objects in a namespace.
func (c *Controller) tenant(name, namespace string) string {
	for _, other := range c.others(name) {
		if other.record == nil {
			continue
		}
		if slices.ContainsFunc(other.record.Inventory, func(e apply.Entry) bool { return e.Namespace == namespace }) {
			return other.record.Owner().Bundle
		}
	}
	return ""
}

// unhold takes objects that a deployment has now off the lists of those that
// other deployments have left behind.
func (c *Controller) unhold(name string, inventory apply.Inventory) {
	has := refsOf(inventory)
	c.mu.Lock()
	defer c.mu.Unlock()
	for other, j := range c.jobs {
		if other == name || j.record == nil || len(j.record.Held) == 0 {
			continue
		}
		taken := claimed(j.record.Held, []claimant{{wants: has}})
		if len(taken) == 0 {
			continue
		}
		next := *j.record
		next.Held = slices.DeleteFunc(slices.Clone(next.Held), func(r apply.Ref) bool { return slices.Contains(taken, r) })
		j.record, j.unsaved = &next, true
		c.queue.Add(other)
	}
}

// removalOptions are the options by which a deployment is removed.
func (c *Controller) removalOptions(d *fleet.BundleDeployment) apply.Options {
	return c.deployment(&state.Record{Options: d.Spec.Options}, nil, false).Options
}

func refsOf(entries []apply.Entry) []apply.Ref {
	refs := make([]apply.Ref, 0, len(entries))
	for _, e := range entries {
		refs = append(refs, e.Ref)
	}
	return refs
}
