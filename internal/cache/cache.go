// Package cache is a small least-recently-used cache that is bounded by the
// bytes it holds rather than by a count: what is worth remembering differs in
// size by a factor of thousands.
package cache

import (
	"container/list"
	"sync"
)

// LRU remembers values under a key until they are the least recently used ones
// and room is needed. It may be used by several goroutines.
type LRU[V any] struct {
	mu      sync.Mutex
	room    int
	used    int
	order   *list.List
	entries map[string]*list.Element
}

type entry[V any] struct {
	key   string
	value V
	size  int
}

// New returns a cache for values of up to room bytes together.
func New[V any](room int) *LRU[V] {
	return &LRU[V]{room: room, order: list.New(), entries: map[string]*list.Element{}}
}

// Get returns the value that is remembered under key.
func (c *LRU[V]) Get(key string) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.entries[key]
	if !ok {
		var none V
		return none, false
	}
	c.order.MoveToFront(element)
	return element.Value.(*entry[V]).value, true
}

// Put remembers value under key. A value larger than the whole room is not
// remembered, so that it does not drive everything else out.
func (c *LRU[V]) Put(key string, value V, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(c.entries[key])
	if size > c.room {
		return
	}
	c.entries[key] = c.order.PushFront(&entry[V]{key: key, value: value, size: size})
	c.used += size
	for c.used > c.room {
		c.drop(c.order.Back())
	}
}

// drop forgets one element and gives its room back.
func (c *LRU[V]) drop(element *list.Element) {
	if element == nil {
		return
	}
	old := c.order.Remove(element).(*entry[V])
	delete(c.entries, old.key)
	c.used -= old.size
}
