package registry

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// One registry that trickles its answers must hold up neither another one nor
// those who only wait in line.
const (
	// doneWithin is how long one piece of work at the registry may take.
	doneWithin = 2 * time.Minute
	// turnWithin is how long anyone waits in line.
	turnWithin = 15 * time.Second
)

// enter waits in line, and bounds the work that follows.
func (r *Registry) enter(ctx context.Context) (bounded context.Context, leave func(), err error) {
	patience, stop := context.WithTimeout(ctx, turnWithin)
	defer stop()
	select {
	case r.turn <- struct{}{}:
	case <-patience.Done():
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		return nil, nil, fault.Wait(wait.Jitter(unreachableRetry, jitter), ReasonUnreachable,
			fmt.Errorf("registry %s is still busy with other content: it answers slowly, or not at all", r.access.Reference))
	}
	bounded, cancel := context.WithTimeout(ctx, doneWithin)
	return bounded, func() { cancel(); <-r.turn }, nil
}
