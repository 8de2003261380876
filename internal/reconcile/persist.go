package reconcile

import (
	"context"
	"math/rand/v2"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-sh/flotilla/internal/backoff"
)

// Persist does a look that an event asks for. One that fails is repeated in the
// background until it succeeds, or ctx ends: an event does not come twice.
func Persist(ctx context.Context, look func() error) {
	err := look()
	if err == nil || ctx.Err() != nil {
		return
	}
	log.FromContext(ctx).Info("an event is looked at again", "error", err.Error())
	pause := backoff.Backoff{Min: backoffMin, Max: backoffMax, Jitter: 0.5}
	go func() {
		for failures := 1; err != nil; failures++ {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause.After(failures, rand.Float64)):
			}
			err = look()
		}
	}()
}
