package kube

import (
	"slices"
	"sync"

	"github.com/flotilla-sh/flotilla/internal/content"
)

// place is a parcel with chunks, stored or about to be.
type place struct {
	name string
	seq  int
	// chunks are the short digests of what it holds.
	chunks []string
	// done is closed once it is stored, or could not be: then failed is true.
	done   chan struct{}
	failed bool
}

// places knows which parcel has which chunk, so that a chunk is stored once.
type places struct {
	mu     sync.Mutex
	seq    int
	byName map[string]*place
	at     map[string]*place
}

// has tells whether there is a parcel of this name with chunks.
func (p *places) has(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byName[name] != nil
}

// add takes in a parcel that is stored.
func (p *places) add(name string, chunks []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	done := make(chan struct{})
	close(done)
	p.put(name, chunks, done)
}

func (p *places) put(name string, chunks []string, done chan struct{}) *place {
	if p.at == nil {
		p.at, p.byName = map[string]*place{}, map[string]*place{}
	}
	p.drop(name)
	p.seq++
	here := &place{name: name, seq: p.seq, chunks: chunks, done: done}
	p.byName[name] = here
	for _, chunk := range chunks {
		p.at[chunk] = here
	}
	return here
}

// lost takes in that a parcel is not stored any more.
func (p *places) lost(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(name)
}

func (p *places) drop(name string) {
	gone := p.byName[name]
	if gone == nil {
		return
	}
	delete(p.byName, name)
	for _, chunk := range gone.chunks {
		if p.at[chunk] == gone {
			delete(p.at, chunk)
		}
	}
}

// claim is how a root's chunks are to be stored.
type claim struct {
	// others have chunks of it, in the order in which they were stored.
	others []*place
	// extra are new parcels of chunks alone, and own are the chunks that go
	// into the root's parcel.
	extra []newPlace
	own   newPlace
}

// newPlace is a parcel that is to be stored, and its chunks.
type newPlace struct {
	*place
	blobs []content.Blob
}

// claim decides for each chunk of a root in which parcel it is to be. Those
// that have to be stored count as being there from now on; settle must follow.
func (p *places) claim(root string, chunks []content.Blob) claim {
	p.mu.Lock()
	defer p.mu.Unlock()
	var c claim
	others, groups := content.Deal(chunks, func(chunk string) (string, int) {
		if at := p.at[chunk]; at != nil {
			return at.name, len(at.chunks)
		}
		return "", 0
	})
	for _, name := range others {
		c.others = append(c.others, p.byName[name])
	}
	slices.SortFunc(c.others, func(a, b *place) int { return a.seq - b.seq })
	for i, group := range groups {
		name := root
		if i < len(groups)-1 {
			name = content.ParcelName(root, group)
		}
		here := newPlace{p.put(name, content.Shorts(group), make(chan struct{})), group}
		if name == root {
			c.own = here
		} else {
			c.extra = append(c.extra, here)
		}
	}
	return c
}

// settle says whether what was claimed is stored.
func (p *places) settle(c claim, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, here := range append(c.extra, c.own) {
		if here.place == nil {
			continue
		}
		here.failed = err != nil
		if here.failed && p.byName[here.name] == here.place {
			p.drop(here.name)
		}
		close(here.done)
	}
}
