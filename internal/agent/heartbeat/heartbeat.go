// Package heartbeat tells the hub that the agent is alive, and nothing else.
package heartbeat

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// retry is when a beat that did not reach the hub is tried again, as long as
// that is sooner than the next one.
const retry = 5 * time.Second

// Hub takes a merge patch of the agent's Lease, and tells whether the Lease is
// another one than before, or an earlier state of it.
type Hub interface {
	PatchLease(ctx context.Context, patch []byte) (lost bool, err error)
}

// Beat renews the agent's Lease without reading it.
type Beat struct {
	Hub Hub
	// Identity names this agent.
	Identity string
	// Interval is the time between two beats.
	Interval time.Duration
	Clock    clock.Clock
	// Anew is called where the hub has lost its Lease, and with it most likely
	// what else it was told.
	Anew func()
}

// Run beats at once and then at every interval, until ctx ends.
func (b Beat) Run(ctx context.Context) {
	for {
		pause := wait.Jitter(b.Interval*19/20, 0.1)
		lost, err := b.once(ctx)
		switch {
		case err == nil:
			if lost && b.Anew != nil {
				b.Anew()
			}
		case ctx.Err() == nil:
			logr.FromContextOrDiscard(ctx).Info("the hub did not take the heartbeat", "error", err.Error())
			pause = min(pause, wait.Jitter(retry, 0.5))
		}
		select {
		case <-ctx.Done():
			return
		case <-b.Clock.After(pause):
		}
	}
}

func (b Beat) once(ctx context.Context) (lost bool, err error) {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{
		"renewTime":            metav1.NewMicroTime(b.Clock.Now()),
		"holderIdentity":       b.Identity,
		"leaseDurationSeconds": int32(b.Interval / time.Second),
	}})
	if err != nil {
		return false, fmt.Errorf("encode the heartbeat: %w", err)
	}
	return b.Hub.PatchLease(ctx, patch)
}
