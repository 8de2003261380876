// Package heartbeat tells the hub that the agent is alive, and what there is to
// say of the agent itself. It is the only writer of the agent's Lease on the
// hub.
package heartbeat

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/flotilla-sh/flotilla/internal/backoff"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// first is how long the first beat waits for something to say: that is known in
// a moment, and spares the hub a second look.
const first = time.Second

// retry is when a beat that did not reach the hub is tried again, as long as
// that is sooner than the next one.
var retry = backoff.Backoff{Min: 5 * time.Second, Max: 20 * time.Second, Jitter: 0.5}

// Hub takes a merge patch of the agent's Lease. It answers what the Lease says of
// the agent now, and whether it is another Lease than before, or an earlier state
// of it.
type Hub interface {
	PatchLease(ctx context.Context, patch []byte) (says string, lost bool, err error)
}

// Options are what a heartbeat is made from.
type Options struct {
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

// Beat renews the agent's Lease without reading it.
type Beat struct {
	Options
	wake chan struct{}
	// says is what the Lease says of this agent, by the hub's last answer.
	says string

	mu sync.Mutex
	// report is what it is to say, as JSON; empty before it is known.
	report string
}

// New returns a heartbeat that has nothing to say yet.
func New(o Options) *Beat { return &Beat{Options: o, wake: make(chan struct{}, 1)} }

// Tell says something of this agent to the hub, at once where it is news. It is
// said again where an answer of the hub shows that it was lost.
func (b *Beat) Tell(r fleet.AgentReport) {
	raw, err := json.Marshal(r)
	if err != nil {
		panic("a report is not JSON: " + err.Error())
	}
	b.mu.Lock()
	news := b.report != string(raw)
	b.report = string(raw)
	b.mu.Unlock()
	if !news {
		return
	}
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Run beats at once and then at every interval, until ctx ends.
func (b *Beat) Run(ctx context.Context) {
	pause, failures := first, 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.Clock.After(pause):
		case <-b.wake:
		}
		pause = backoff.Spread(b.Interval*19/20, 0.1, rand.Float64)
		forgotten, err := b.once(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			logr.FromContextOrDiscard(ctx).Info("the hub did not take the heartbeat", "error", err.Error())
			failures++
			pause = min(pause, retry.After(failures, rand.Float64))
			continue
		case forgotten:
			pause = 0
		}
		failures = 0
	}
}

// once beats. What the Lease says already is not sent; forgotten is true where
// the answer shows that it does not say it any more.
func (b *Beat) once(ctx context.Context) (forgotten bool, err error) {
	b.mu.Lock()
	report := b.report
	b.mu.Unlock()
	patch := map[string]any{"spec": map[string]any{
		"renewTime":            metav1.NewMicroTime(b.Clock.Now()),
		"holderIdentity":       b.Identity,
		"leaseDurationSeconds": int32(b.Interval / time.Second),
	}}
	// Nobody asks who wrote which field of a Lease, and every beat would pay for
	// the record.
	metadata := map[string]any{"managedFields": []metav1.ManagedFieldsEntry{{}}}
	patch["metadata"] = metadata
	telling := report != "" && report != b.says
	if telling {
		metadata["annotations"] = map[string]string{fleet.AgentReportAnnotation: report}
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return false, fmt.Errorf("encode the heartbeat: %w", err)
	}
	says, lost, err := b.Hub.PatchLease(ctx, raw)
	if err != nil {
		return false, err
	}
	b.says = says
	if lost && b.Anew != nil {
		b.Anew()
	}
	return report != "" && says != report && !telling, nil
}
