package deploy

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-sh/flotilla/internal/agent/state"
	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/observe"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Wanted returns what the deployment with this label has applied.
func (c *Controller) Wanted(ctx context.Context, label string) (observe.Wanted, error) {
	c.mu.Lock()
	var j job
	if known := c.jobs[c.labels[label]]; known != nil {
		j = *known
	}
	c.mu.Unlock()
	if j.record == nil {
		return observe.Wanted{}, fmt.Errorf("no deployment on this cluster has the label %s", label)
	}
	engine, err := c.as(ctx, j.record.Options)
	if err != nil {
		return observe.Wanted{}, err
	}
	// What is compared is what was applied, not what the hub wants by now.
	j.desired = nil
	plan := sync.OnceValues(func() (*apply.Plan, error) { return c.plan(ctx, j) })
	return observe.Wanted{
		Dress: c.worn(j.record),
		Owner: j.record.Owner(), As: engine.Client(),
		Rules: rulesOf(j.record.Options), Secret: j.record.Secret(),
		Object: func(ref apply.Ref) (*unstructured.Unstructured, bool, error) {
			p, err := plan()
			if err != nil {
				return nil, false, err
			}
			obj, ok := p.Find(ref)
			return obj, ok, nil
		},
	}, nil
}

// worn is what a deployment has set on its namespace. Where that is an object of
// the deployment as well, it is looked at as one.
func (c *Controller) worn(r *state.Record) apply.Dress {
	dress := c.deployment(r, nil, false).Dress
	owned := slices.ContainsFunc(r.Inventory, func(e apply.Entry) bool { return e.Identity() == apply.RefOf(dress.Object()).Identity() })
	if owned || !dress.Worn(r.Dressed) {
		return apply.Dress{}
	}
	return dress
}

func rulesOf(o fleet.BundleDeploymentOptions) observe.Rules {
	rules := observe.Rules{Conditions: o.IgnoreOptions.Conditions, Jobs: o.Helm != nil && o.Helm.WaitForJobs}
	if o.Diff != nil {
		rules.Patches = o.Diff.ComparePatches
	}
	return rules
}

func (c *Controller) plan(ctx context.Context, j job) (*apply.Plan, error) {
	next := j.next()
	objects, err := c.fetch(ctx, j, next)
	if err != nil {
		return nil, err
	}
	return c.engine.Plan(ctx, c.deployment(next, objects, false))
}
