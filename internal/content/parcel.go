package content

import (
	"encoding/binary"
	"errors"

	"github.com/flotilla-sh/flotilla/internal/digest"
)

const (
	// parcelLimit is the size at which the chunks of a parcel go into another.
	parcelLimit = 640 << 10
	// MaxOthers is the number of parcels that a root may need beside its own.
	// One that would need more gets all of its chunks anew.
	MaxOthers = 8
)

// Parcel is what is stored under one name.
type Parcel struct {
	// Data is the payload that the parcel is named after, compressed. A parcel
	// of chunks alone has none.
	Data []byte
	// Pack holds chunks; see Pack.
	Pack []byte
	// Others name the parcels with the chunks that this one lacks, those that
	// were stored first first.
	Others []string
}

// Pack puts compressed chunks behind each other, each after its length.
func Pack(chunks []Blob) []byte {
	if len(chunks) == 0 {
		return nil
	}
	var out []byte
	for _, c := range chunks {
		out = binary.AppendUvarint(out, uint64(len(c.Data)))
		out = append(out, c.Data...)
	}
	return out
}

var errTorn = errors.New("a parcel is torn: it is shorter than it says")

// unpack returns the compressed chunks of a pack by digest. One that is damaged
// is left out: nothing asks for the digest that it has now.
func unpack(packed []byte) (map[string][]byte, error) {
	out := map[string][]byte{}
	for len(packed) > 0 {
		size, n := binary.Uvarint(packed)
		if n <= 0 || size > uint64(len(packed)-n) {
			return out, errTorn
		}
		data := packed[n : n+int(size)]
		packed = packed[n+int(size):]
		if raw, err := decompress(data); err == nil {
			out[digest.OfBytes(raw)] = data
		}
	}
	return out, nil
}

// parcels deals chunks out to parcels that each can be stored.
func parcels(chunks []Blob) [][]Blob {
	var out [][]Blob
	size := 0
	for _, c := range chunks {
		if len(out) == 0 || size+len(c.Data) > parcelLimit {
			out, size = append(out, nil), 0
		}
		last := len(out) - 1
		out[last], size = append(out[last], c), size+len(c.Data)
	}
	return out
}

// size is the number of bytes that were read to get this parcel.
func (p Parcel) size() int { return len(p.Data) + len(p.Pack) }
