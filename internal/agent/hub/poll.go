package hub

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/flotilla-sh/flotilla/internal/backoff"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// pollRetry is when a look that failed is repeated, and longer every time, as
// long as that is sooner than the next one.
const pollRetry = 5 * time.Second

// Poll keeps in informed of the deployments of the cluster until ctx ends, by
// one list per interval: between two of them nothing is open.
func (c *Client) Poll(ctx context.Context, in Inbox, every time.Duration, clock clock.Clock) {
	retry, failures, heard := backoff.Backoff{Min: pollRetry, Max: every, Jitter: 1}, 0, ""
	for {
		pause := backoff.Spread(every*9/10, 0.2, rand.Float64)
		var err error
		if heard, err = c.poll(ctx, in, heard); err != nil && ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).Info("could not look at the hub", "error", err.Error())
			failures++
			pause = min(pause, retry.After(failures, rand.Float64))
		} else {
			failures = 0
		}
		select {
		case <-ctx.Done():
			return
		case <-c.lost:
			in.Anew()
		case <-clock.After(pause):
		}
	}
}

// poll takes in one list that is no older than what was heard before, and returns
// its version: a cache that is behind would bring back what was removed. The
// first list is the truth, and so is the one after an error: a hub that came
// from a backup may never have had that version.
func (c *Client) poll(ctx context.Context, in Inbox, heard string) (string, error) {
	list := &fleet.BundleDeploymentList{}
	if err := c.deployments().VersionedParams(&metav1.ListOptions{ResourceVersion: heard}, c.codec).Do(ctx).Into(list); err != nil {
		return "", err
	}
	names := make(map[string]bool, len(list.Items))
	for i := range list.Items {
		names[list.Items[i].Name] = true
		in.Received(&list.Items[i])
	}
	in.Listed(names)
	return list.ResourceVersion, nil
}
