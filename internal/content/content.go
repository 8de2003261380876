// Package content stores what the hub sends: the bytes of a manifest, split at
// object boundaries and named so that the same bytes are stored and sent once.
//
// A deployment names one root. A small manifest is the root itself; a larger
// one is cut into chunks, and the root lists them. Where a chunk begins and
// ends depends on the names of its objects, so that a change to one object
// leaves all other chunks, and their names, as they were.
package content

import (
	"bytes"
	"compress/gzip"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

const (
	// maxBlob is the largest compressed payload that is stored: as base64 in
	// JSON it stays below 1 MiB, within what etcd takes as one object.
	maxBlob = 700 << 10
	// maxPayload bounds what one blob may decompress to.
	maxPayload = 256 << 20
	// inlineLimit is the size up to which a manifest is kept in its root.
	inlineLimit = 48 << 10
	// chunkTarget is the size at which a chunk is closed.
	chunkTarget = 32 << 10
)

// Ref names a stored payload.
type Ref struct {
	// Digest is the SHA-256 of the uncompressed payload, in hex. It is empty
	// for secret chunks: whoever may read the root must not be able to guess
	// a short secret by trying digests.
	Digest string `json:"digest,omitempty"`
	// Name is the name of the object that holds the payload.
	Name string `json:"name"`
	// Secret is true where that object is a Secret in the cluster's
	// namespace instead of a ConfigMap.
	Secret bool `json:"secret,omitempty"`
}

// Blob is a payload as it is stored.
type Blob struct {
	Ref
	// Data is the compressed payload.
	Data []byte
	// Chunks are the payloads that this one, as a root, refers to.
	Chunks []Ref
}

// Encoded is something ready to be stored: its root and the root's chunks.
type Encoded struct {
	Root   Blob
	Chunks []Blob
}

// payload is the wire format of roots and chunks.
type payload struct {
	Version int               `json:"v"`
	Objects []json.RawMessage `json:"objects,omitempty"`
	Files   []filePart        `json:"files,omitempty"`
	Request json.RawMessage   `json:"request,omitempty"`
	Chunks  []Ref             `json:"chunks,omitempty"`
}

const payloadVersion = 1

// Key is the hub's secret from which names are made. A name made with a key
// says nothing about the bytes to those who do not have it.
type Key []byte

// Name returns the object name for a payload with this digest.
func (k Key) Name(digest string) string {
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte(digest))
	return "c-" + hex.EncodeToString(mac.Sum(nil))[:40]
}

// blob marshals, digests, names and compresses a payload.
func (k Key) blob(p payload, secret bool) (Blob, error) {
	p.Version = payloadVersion
	raw, err := json.Marshal(p)
	if err != nil {
		return Blob{}, fmt.Errorf("encode content: %w", err)
	}
	digest := digestOf(raw)
	data, err := compress(raw)
	if err != nil {
		return Blob{}, fmt.Errorf("compress content: %w", err)
	}
	ref := Ref{Digest: digest, Name: k.Name(digest), Secret: secret}
	return Blob{Ref: ref, Data: data, Chunks: p.Chunks}, nil
}

// Public returns the reference that may stand in a root.
func (r Ref) Public() Ref {
	if r.Secret {
		r.Digest = ""
	}
	return r
}

func digestOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

var gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}

func compress(raw []byte) ([]byte, error) {
	var buf bytes.Buffer
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	w.Reset(&buf)
	if _, err := w.Write(raw); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// decode decompresses a blob's data and verifies it against its reference.
func decode(ref Ref, data []byte) (payload, error) {
	var p payload
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return p, fmt.Errorf("content %s is damaged: %w", ref.Name, err)
	}
	raw, err := io.ReadAll(io.LimitReader(r, maxPayload))
	if err != nil {
		return p, fmt.Errorf("content %s is damaged: %w", ref.Name, err)
	}
	if got := digestOf(raw); ref.Digest != "" && got != ref.Digest {
		return p, fmt.Errorf("content %s is not what was asked for: its digest is %s, wanted %s", ref.Name, got, ref.Digest)
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, fmt.Errorf("content %s is damaged: %w", ref.Name, err)
	}
	if p.Version != payloadVersion {
		return p, fmt.Errorf("content %s has format %d, this program knows format %d: upgrade it", ref.Name, p.Version, payloadVersion)
	}
	return p, nil
}
