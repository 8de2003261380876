package lease

import (
	"errors"
	"net/http"

	"k8s.io/client-go/rest"
)

// ErrNotRenewed says that a write was not sent because the Lease may be
// another agent's by now.
var ErrNotRenewed = errors.New("this agent could not renew its Lease and writes nothing until it has: does its API server answer?")

// Fence returns a config through which nothing is written while the Lease is
// not renewed.
func (h *Holder) Fence(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return fence{h, next} })
	return c
}

type fence struct {
	holder *Holder
	next   http.RoundTripper
}

// RoundTrip passes a request on that may be sent.
func (f fence) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && !f.holder.mayWrite() {
		return nil, ErrNotRenewed
	}
	return f.next.RoundTrip(r)
}

func (h *Holder) mayWrite() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease != nil && h.Clock.Since(h.renewed) < actsFor
}
