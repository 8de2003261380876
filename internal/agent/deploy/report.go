package deploy

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/flotilla-sh/flotilla/internal/observe"
)

// reportRetryMin and reportRetryMax bound the wait before a report that did
// not reach the hub is tried again.
const (
	reportRetryMin = 2 * time.Second
	reportRetryMax = 30 * time.Second
)

// unreported counts a report that did not reach the hub, and returns when to
// try again.
func (c *Controller) unreported(name string) time.Duration {
	var pause time.Duration
	c.update(name, func(j *job) {
		j.unreported++
		pause = growing(j.unreported, reportRetryMin, reportRetryMax)
	})
	return pause
}

// growing returns the wait after so many failures in a row, with jitter.
func growing(failures int, least, most time.Duration) time.Duration {
	return wait.Jitter(min(least<<min(failures-1, 10), most), 0.5)
}

// report notes how a deployment stands, and writes its status to the hub where
// that has changed.
func (c *Controller) report(ctx context.Context, j job, d Decision) error {
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
