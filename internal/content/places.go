package content

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync"
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

// short is enough of a digest to find a chunk by.
func short(digest string) string { return digest[:min(16, len(digest))] }

// Shorts returns the short digests of chunks, as Deal asks for them.
func Shorts(chunks []Blob) []string {
	out := make([]string, len(chunks))
	for i, c := range chunks {
		out[i] = short(c.Digest)
	}
	return out
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
	blobs []Blob
}

// claim decides for each chunk of a root in which parcel it is to be. Those
// that have to be stored count as being there from now on; settle must follow.
func (p *places) claim(root string, chunks []Blob) claim {
	p.mu.Lock()
	defer p.mu.Unlock()
	var c claim
	others, groups := Deal(chunks, func(chunk string) (string, int) {
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
			name = parcelName(root, group)
		}
		here := newPlace{p.put(name, Shorts(group), make(chan struct{})), group}
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

// Deal decides which chunks of a root are to be stored, in which groups, and
// which others count on what is stored. at tells for a chunk where it is and
// how many chunks are there.
func Deal(chunks []Blob, at func(chunk string) (where string, holds int)) (others []string, groups [][]Blob) {
	missing, held := []Blob{}, 0
	for _, chunk := range chunks {
		where, holds := at(short(chunk.Digest))
		switch {
		case where == "":
			missing = append(missing, chunk)
		case !slices.Contains(others, where):
			others = append(others, where)
			held += holds
		}
	}
	if len(others) > maxOthers || held+len(missing) > 2*len(chunks)+8 {
		// Who has none of it yet would read many parcels, or much else.
		return nil, parcels(chunks)
	}
	return others, parcels(missing)
}

// parcelName names a parcel of chunks alone. It is as hard to guess as the
// root's name.
func parcelName(root string, chunks []Blob) string {
	h := sha256.New()
	h.Write([]byte(root))
	for _, c := range chunks {
		h.Write([]byte(c.Digest))
	}
	return "c-" + hex.EncodeToString(h.Sum(nil))[:40]
}
