package manifest

import (
	"github.com/flotilla-sh/flotilla/internal/cache"
	"github.com/flotilla-sh/flotilla/internal/digest"
)

const (
	// decodedFactor is about how many times its text a decoded object occupies.
	decodedFactor = 8
	// seenRoom is enough for the digests of some ten thousand texts.
	seenRoom = 1 << 20
	// aheadRoom is enough for what one render looks at ahead.
	aheadRoom = 4 << 20
)

// Reader parses texts and remembers what they hold by their digest: from one
// cluster to the next most files of a chart render to the same text. A text
// that comes for the first time is not remembered: where values differ, it is
// most often the last time, too.
type Reader struct {
	known, ahead *cache.LRU[*Parsed]
	seen         *cache.LRU[struct{}]
}

// NewReader returns a Reader that remembers up to room bytes.
func NewReader(room int) *Reader {
	return &Reader{known: cache.New[*Parsed](room), ahead: cache.New[*Parsed](aheadRoom), seen: cache.New[struct{}](seenRoom)}
}

// Parse is like the function Parse. What it returns is shared.
func (r *Reader) Parse(text []byte) (*Parsed, error) {
	key := digest.OfBytes(text)
	parsed, err := r.parse(key, text)
	if err != nil {
		return nil, err
	}
	if _, again := r.seen.Get(key); again {
		r.known.Put(key, parsed, len(text)*decodedFactor)
	} else {
		r.seen.Put(key, struct{}{}, len(key))
	}
	return parsed, nil
}

// LookAhead is Parse for a text that is about to be read by Parse.
func (r *Reader) LookAhead(text []byte) (*Parsed, error) {
	key := digest.OfBytes(text)
	parsed, err := r.parse(key, text)
	if err != nil {
		return nil, err
	}
	r.ahead.Put(key, parsed, len(text)*decodedFactor)
	return parsed, nil
}

// ParseAs is Parse for a text that has a name of its own, and comes often: equal
// keys mean equal texts.
func (r *Reader) ParseAs(key string, text []byte) (*Parsed, error) {
	parsed, err := r.parse(key, text)
	if err != nil {
		return nil, err
	}
	r.known.Put(key, parsed, len(text)*decodedFactor)
	return parsed, nil
}

func (r *Reader) parse(key string, text []byte) (*Parsed, error) {
	if parsed, ok := r.known.Get(key); ok {
		return parsed, nil
	}
	if parsed, ok := r.ahead.Get(key); ok {
		return parsed, nil
	}
	return Parse(text)
}
