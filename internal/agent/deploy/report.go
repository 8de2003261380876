package deploy

import (
	"context"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-sh/flotilla/internal/apireq"
	"github.com/flotilla-sh/flotilla/internal/backoff"
	"github.com/flotilla-sh/flotilla/internal/observe"
)

// reportRetry is when a report that did not reach the hub is tried again.
var reportRetry = backoff.Backoff{Min: 2 * time.Second, Max: 30 * time.Second, Jitter: 0.5}

// unreported counts a report that did not reach the hub, and returns when to
// try again.
func (c *Controller) unreported(name string) time.Duration {
	var pause time.Duration
	c.update(name, func(j *job) {
		j.unreported++
		pause = reportRetry.After(j.unreported, rand.Float64)
	})
	return pause
}

// report notes how a deployment stands, and writes its status to the hub where
// that has changed.
func (c *Controller) report(ctx context.Context, j job, d Decision) error {
	if known, err := c.certain(ctx, j); !known {
		return err
	}
	s, err := j.statusOf(d, c.clock.Now())
	if err != nil {
		return err
	}
	c.update(j.name, func(live *job) { live.since = remember(live.since, s.Conditions, c.clock.Now()) })
	if j.desired == nil {
		return nil
	}
	patch, now, err := statusPatch(j.reported, s)
	if err != nil || patch == nil {
		return err
	}
	wrote, err := c.hub.PatchStatus(ctx, j.name, patch)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.update(j.name, func(live *job) { live.unsure = live.unsure || !apireq.Refused(err) })
		return err
	}
	if wrote.UID != j.desired.UID {
		// The deployment was made anew meanwhile, and has only what has changed
		// of the status: it gets all of it, once it is known here.
		known := false
		c.update(j.name, func(live *job) {
			live.reported, live.statusVersion = nil, ""
			known = live.desired != nil && live.desired.UID == wrote.UID
		})
		if known {
			c.queue.Add(j.name)
		}
		return nil
	}
	c.update(j.name, func(live *job) {
		if !observe.Older(wrote.ResourceVersion, live.statusVersion) {
			live.reported, live.statusVersion, live.unreported = now, wrote.ResourceVersion, 0
		}
	})
	c.wakeDependents(j.name)
	return nil
}

// certain tells whether it is known what the hub has been told. Where an answer was
// lost it is asked: a report is what has changed since the last one, and what the
// lost one had changed would stay. What it says may be news.
func (c *Controller) certain(ctx context.Context, j job) (bool, error) {
	if !j.unsure || j.desired == nil {
		return true, nil
	}
	bd, err := c.hub.Get(ctx, j.name)
	if err != nil {
		if apierrors.IsNotFound(err) {
			err = nil // which will be heard
		}
		return false, err
	}
	news := false
	c.update(j.name, func(live *job) { live.unsure, news = false, live.receive(bd) })
	if news {
		c.queue.Add(j.name)
	}
	return !news, nil
}
