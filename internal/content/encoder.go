package content

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/flotilla-sh/flotilla/internal/render"
)

// Encoder packs the objects of one bundle for one cluster after another. What
// is equal for many of them, as a chart's definitions are, is compressed and
// kept once. It may be used by several goroutines.
type Encoder struct {
	key Key

	mu    sync.Mutex
	known map[[sha256.Size]byte]Blob
}

// NewEncoder returns an Encoder that names what it packs with key. It keeps
// all that it packed: it is for one bundle at one time.
func NewEncoder(key Key) *Encoder {
	return &Encoder{key: key, known: map[[sha256.Size]byte]Blob{}}
}

// Objects packs rendered objects. Secret objects go into chunks of their own,
// which are stored as Secrets.
func (e *Encoder) Objects(objects []render.Object) (Encoded, error) {
	items := objectItems(objects)
	total, secrets := 0, 0
	for i := range items {
		total += items[i].size
		if items[i].secret {
			secrets++
		}
	}
	if secrets == 0 && total <= inlineLimit {
		root, err := e.key.blob(payloadOf(items), false)
		return Encoded{Root: root}, err
	}
	chunks, err := encodeItems(items, e.pack)
	if err != nil {
		return Encoded{}, err
	}
	return withRoot(e.key, chunks, false)
}

// pack makes one chunk, or finds it.
func (e *Encoder) pack(group []item) (Blob, error) {
	id := identify(group)
	e.mu.Lock()
	blob, ok := e.known[id]
	e.mu.Unlock()
	if ok {
		return blob, nil
	}
	blob, err := e.key.chunk(group)
	if err == nil {
		e.mu.Lock()
		e.known[id] = blob
		e.mu.Unlock()
	}
	return blob, err
}

// identify tells groups of objects apart by their bytes. All objects of a
// group are secret, or none is, and that follows from their bytes.
func identify(group []item) (id [sha256.Size]byte) {
	h := sha256.New()
	var size [8]byte
	for i := range group {
		binary.BigEndian.PutUint64(size[:], uint64(len(group[i].object)))
		_, _ = h.Write(size[:])
		_, _ = h.Write(group[i].object)
	}
	h.Sum(id[:0])
	return id
}
