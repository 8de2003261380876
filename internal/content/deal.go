package content

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

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
	if len(others) > MaxOthers || held+len(missing) > 2*len(chunks)+8 {
		// Who has none of it yet would read many parcels, or much else.
		return nil, parcels(chunks)
	}
	return others, parcels(missing)
}

// ParcelName names a parcel of chunks alone. It is as hard to guess as the
// root's name.
func ParcelName(root string, chunks []Blob) string {
	h := sha256.New()
	h.Write([]byte(root))
	for _, c := range chunks {
		h.Write([]byte(c.Digest))
	}
	return "c-" + hex.EncodeToString(h.Sum(nil))[:40]
}
