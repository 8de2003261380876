// Package digest holds the one hash that names content, options and render
// inputs. Equal digests mean equal bytes, so every other package may compare
// digests where it would otherwise compare values.
package digest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// OfBytes returns the SHA-256 of b in hex.
func OfBytes(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Of returns the SHA-256 of parts in hex. Each part is preceded by its length,
// so that moving a byte from one part to the next gives another digest.
func Of(parts ...[]byte) string {
	h := sha256.New()
	var length [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// OfJSON returns the digest of v as canonical JSON.
func OfJSON(v any) (string, error) {
	b, err := JSON(v)
	if err != nil {
		return "", err
	}
	return OfBytes(b), nil
}

// JSON returns v as canonical JSON: keys sorted at every level whatever the
// order of the struct's fields, no white space, no HTML escapes, and numbers as
// they were written.
func JSON(v any) ([]byte, error) {
	raw, err := encode(v)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var plain any
	if err := decoder.Decode(&plain); err != nil {
		return nil, fmt.Errorf("canonical JSON of %T: %w", v, err)
	}
	return encode(plain)
}

func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("canonical JSON of %T: %w", v, err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
