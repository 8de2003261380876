package manifest

import (
	"github.com/flotilla-sh/flotilla/internal/digest"
	"github.com/flotilla-sh/flotilla/internal/render/cache"
)

// decodedFactor is about how many times its text a decoded object occupies.
const decodedFactor = 8

// Reader parses texts and remembers what they hold by their digest: from one
// cluster to the next most files of a chart render to the same text.
type Reader struct {
	known *cache.LRU[*Parsed]
}

// NewReader returns a Reader that remembers up to room bytes.
func NewReader(room int) *Reader { return &Reader{known: cache.New[*Parsed](room)} }

// Parse is like the function Parse. What it returns is shared.
func (r *Reader) Parse(text []byte) (*Parsed, error) {
	return r.ParseAs(digest.OfBytes(text), text)
}

// ParseAs is Parse for a text that has a name of its own: equal keys mean equal
// texts.
func (r *Reader) ParseAs(key string, text []byte) (*Parsed, error) {
	if parsed, ok := r.known.Get(key); ok {
		return parsed, nil
	}
	parsed, err := Parse(text)
	if err != nil {
		return nil, err
	}
	r.known.Put(key, parsed, len(text)*decodedFactor)
	return parsed, nil
}
