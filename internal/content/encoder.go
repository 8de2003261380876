package content

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/flotilla-sh/flotilla/internal/cache"
	"github.com/flotilla-sh/flotilla/internal/render"
)

// Encoder packs the objects of one bundle for one cluster after another. What
// is equal for many of them, as a chart's definitions are, is compressed and
// once. It may be used by several goroutines.
type Encoder struct {
	key   Key
	known *cache.LRU[Blob]
}

// encoderRoom is enough for what the clusters of a large chart have in common,
// packed, and for what differs in those that are packed at one time.
const encoderRoom = 16 << 20

// NewEncoder returns an Encoder that names what it packs with key. It keeps
// what it packed or found last: it is for one bundle at one time.
func NewEncoder(key Key) *Encoder {
	return &Encoder{key: key, known: cache.New[Blob](encoderRoom)}
}

// Objects packs rendered objects. Secret objects go into chunks of their own,
// which are stored as Secrets.
func (e *Encoder) Objects(objects []render.Object) (Encoded, error) {
	items := objectItems(objects)
	secret := func(it item) bool { return it.secret }
	if total(items) <= inlineLimit && !slices.ContainsFunc(items, secret) {
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
	if blob, ok := e.known.Get(id); ok {
		return blob, nil
	}
	blob, err := e.key.chunk(group)
	if err == nil {
		e.known.Put(id, blob, len(blob.Data)+len(id))
	}
	return blob, err
}

// identify tells groups of objects apart by their bytes. All objects of a
// group are secret, or none is, and that follows from their bytes.
func identify(group []item) string {
	h := sha256.New()
	var size [8]byte
	for i := range group {
		binary.BigEndian.PutUint64(size[:], uint64(len(group[i].object)))
		_, _ = h.Write(size[:])
		_, _ = h.Write(group[i].object)
	}
	return string(h.Sum(nil))
}
