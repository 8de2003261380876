package worker

import (
	"fmt"
	"strconv"

	"github.com/flotilla-sh/flotilla/internal/cache"
)

const (
	// shareRoom is how many bytes of objects both ends of a pipe remember.
	shareRoom = 16 << 20
	// shareLeast is the size of an object from which remembering pays.
	shareLeast = 1 << 10
)

// sender is a child's end: it sends an object that it has sent twice already,
// such as a chart's definitions, by its number. What comes once, as most does
// where values differ, takes no memory of the parent.
type sender struct {
	seen  *cache.LRU[[]byte] // once, by address
	known *cache.LRU[shared] // by the parent, by address
	last  int
}

// shared is an object that has a number. The text keeps its address from
// standing for another.
type shared struct {
	number int
	text   []byte
}

func newSender() *sender {
	return &sender{seen: cache.New[[]byte](shareRoom), known: cache.New[shared](shareRoom)}
}

// pack returns what is sent of an object: the text, with the number by which
// the parent is to know it from now on or 0, or the number alone. Nobody changes
// objects that were rendered, and those that are remembered keep their address.
func (s *sender) pack(text []byte) (number int, part []byte) {
	if len(text) < shareLeast {
		return 0, text
	}
	address := fmt.Sprintf("%p %d", text, len(text))
	if known, ok := s.known.Get(address); ok {
		return known.number, nil
	}
	if _, again := s.seen.Get(address); !again {
		s.seen.Put(address, text, len(text))
		return 0, text
	}
	s.last++
	s.known.Put(address, shared{s.last, text}, len(text))
	return s.last, text
}

// receiver is the parent's end. It forgets exactly what the sender does: both
// see the same objects in the same order.
type receiver struct{ known *cache.LRU[[]byte] }

func newReceiver() *receiver { return &receiver{known: cache.New[[]byte](shareRoom)} }

// unpack is the reverse of pack.
func (r *receiver) unpack(number int, part []byte) ([]byte, error) {
	key := strconv.Itoa(number)
	switch {
	case number == 0:
		return part, nil
	case len(part) > 0:
		r.known.Put(key, part, len(part))
		return part, nil
	}
	known, ok := r.known.Get(key)
	if !ok {
		return nil, fmt.Errorf("the render process sent object %d by its number alone, and it is not known", number)
	}
	return known, nil
}
