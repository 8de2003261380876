package webhook

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// rememberFor and rememberMost bound the memory of deliveries. A body that
	// comes again within that is a replay. It is not kept for longer since some
	// servers send equal bodies for pushes that move a branch to and fro.
	rememberFor  = time.Hour
	rememberMost = 8192
)

// delivery identifies one delivery.
type delivery [sha256.Size]byte

// identify digests what was signed: the whole body. Where a server signs
// nothing, the id that it gives to a delivery is taken in.
func identify(c call, body []byte) delivery {
	h := sha256.New()
	h.Write([]byte(string(c.from) + "\x00" + c.id + "\x00"))
	h.Write(body)
	return delivery(h.Sum(nil))
}

// memory knows the deliveries that were taken, oldest first.
type memory struct {
	mu    sync.Mutex
	at    map[delivery]time.Time
	order []delivery
}

// take remembers a delivery; it is false where it was taken before.
func (m *memory) take(d delivery, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.order) > 0 && (len(m.order) >= rememberMost || now.Sub(m.at[m.order[0]]) > rememberFor) {
		delete(m.at, m.order[0])
		m.order = m.order[1:]
	}
	if _, ok := m.at[d]; ok {
		return false
	}
	if m.at == nil {
		m.at = map[delivery]time.Time{}
	}
	m.at[d] = now
	m.order = append(m.order, d)
	return true
}

// forget lets a delivery come again that could not be acted on.
func (m *memory) forget(d delivery) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.at, d)
}
