package summary

import (
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/flotilla-sh/flotilla/internal/status"
)

const (
	// settle is how long events are gathered at least: those of one moment
	// make one write.
	settle = 300 * time.Millisecond
	// between is the least time between two writes of one object.
	between = 700 * time.Millisecond
	// window is the same while deployments are on their way, so that more is
	// sure to come; with the jitter it is within what a person waits for.
	window = 1500 * time.Millisecond
	// jitter spreads the writes of a wave.
	jitter = 300 * time.Millisecond
)

// pace says when the roll-up of an object is to be written. A first change is
// written soon, and so is the last one of a wave; those between them wait for
// each other. No change waits longer than window and jitter.
type pace struct {
	clock clock.PassiveClock
	// random returns a number in [0, 1).
	random func() float64

	mu    sync.Mutex
	wrote map[status.Parent]time.Time
}

func newPace(c clock.PassiveClock) *pace {
	return &pace{clock: c, random: rand.Float64, wrote: map[status.Parent]time.Time{}}
}

// wait returns how long to wait with a change that has just happened.
func (p *pace) wait(parent status.Parent, moving bool) time.Duration {
	p.mu.Lock()
	last, known := p.wrote[parent]
	p.mu.Unlock()
	least := between
	if moving {
		least = window + time.Duration(p.random()*float64(jitter))
	}
	if moving && parent.Kind == status.KindCluster {
		// There are as many as deployments may be: what is applied within the
		// window, as nearly all is, costs each cluster one write.
		return least
	}
	if !known {
		return settle
	}
	return max(settle, least-p.clock.Since(last))
}

// written notes that the roll-up of an object was written.
func (p *pace) written(parent status.Parent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrote[parent] = p.clock.Now()
}

// forget drops an object that is gone.
func (p *pace) forget(parent status.Parent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.wrote, parent)
}
