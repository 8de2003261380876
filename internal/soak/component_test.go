package soak_test

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flotilla-sh/flotilla/internal/faultproxy"
)

// component is a program that may be killed at any time and is then started
// again, as a kubelet would.
type component struct {
	name    string
	proxies []*faultproxy.Proxy
	// run is one life; kill ends it and is to be given to the proxies.
	run func(ctx context.Context, kill func()) error
	// pause is how long it takes until it is started again.
	pause time.Duration
	trace func(format string, args ...any)

	mu   sync.Mutex
	kill func()
	stop context.CancelFunc
	done chan struct{}
}

// start runs the component until halt.
func (c *component) start(ctx context.Context) {
	ctx, c.stop = context.WithCancel(ctx)
	c.done = make(chan struct{})
	go func() {
		defer close(c.done)
		for ctx.Err() == nil {
			err := c.live(ctx)
			c.trace("%s ended: %v", c.name, err)
			select {
			case <-ctx.Done():
			case <-time.After(c.pause):
			}
		}
	}()
}

// live is one life.
func (c *component) live(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var dead atomic.Bool
	kill := func() {
		if dead.Swap(true) {
			return // by one of the proxies below
		}
		cancel()
		for _, p := range c.proxies {
			p.Kill()
		}
	}
	c.mu.Lock()
	c.kill = kill
	c.mu.Unlock()
	return c.run(ctx, kill)
}

// restart kills the component; it is started again.
func (c *component) restart() {
	c.mu.Lock()
	kill := c.kill
	c.mu.Unlock()
	if kill != nil {
		kill()
	}
}

// halt ends the component and waits for its end.
func (c *component) halt() {
	c.stop()
	<-c.done
}
