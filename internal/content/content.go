// Package content is the form of what the hub sends: the bytes of a manifest,
// split at object boundaries and named so that the same bytes are stored and
// sent once. It packs and fetches; where it is kept is up to its sub-packages.
//
// A deployment names one root. A small manifest is the root itself; a larger
// one is cut into chunks, and the root lists them. Where a chunk begins and
// ends depends on the names of its objects, so that a change to one object
// leaves all other chunks, and their digests, as they were.
//
// What is stored under a root's name is a parcel: the root, those chunks that
// no earlier parcel has, and the names of the parcels that have the others. So
// a first fetch takes few requests, and a later one fetches what is new.
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
	"slices"
	"sync"

	"github.com/flotilla-sh/flotilla/internal/digest"
)

const (
	// maxBlob is the largest compressed payload that is stored: as base64 in
	// JSON it stays below 1 MiB, within what etcd takes as one object.
	maxBlob = 700 << 10
	// maxPayload bounds what one blob may decompress to.
	maxPayload = 256 << 20
	// inlineLimit is the size up to which a manifest, or the files of a source,
	// are kept in their root.
	inlineLimit = 48 << 10
	// chunkTarget is the size at which a chunk is closed. Smaller chunks make
	// a change smaller and the list of chunks longer.
	chunkTarget = 40 << 10
)

// Ref names a stored payload.
type Ref struct {
	// Digest is the SHA-256 of the uncompressed payload, in hex. It is empty
	// for secret chunks: whoever may read the root must not be able to guess
	// a short secret by trying digests.
	Digest string `json:"digest,omitempty"`
	// Name is the name of the object that holds the payload. It is empty for
	// chunks that are not secret: those are found in parcels, by their digest.
	Name string `json:"name,omitempty"`
	// Secret is true where that object is a Secret in the cluster's
	// namespace instead of a ConfigMap.
	Secret bool `json:"secret,omitempty"`
}

// ID tells a payload from others, fit to be a part of an object's name.
func (r Ref) ID() string {
	if r.Name != "" {
		return r.Name
	}
	return "d-" + r.Digest[:min(40, len(r.Digest))]
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

// Open returns the chunks that are not secret.
func (e Encoded) Open() []Blob {
	return slices.DeleteFunc(slices.Clone(e.Chunks), func(b Blob) bool { return b.Secret })
}

// payload is the wire format of roots and chunks.
type payload struct {
	Version int               `json:"v"`
	Objects []json.RawMessage `json:"objects,omitempty"`
	Files   []filePart        `json:"files,omitempty"`
	Request json.RawMessage   `json:"request,omitempty"`
	Chunks  []Ref             `json:"chunks,omitempty"`
}

// Versions of the wire format. In the second one a root has chunks in parcels.
const (
	payloadVersion = 1
	parcelVersion  = 2
)

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
	if slices.ContainsFunc(p.Chunks, func(r Ref) bool { return !r.Secret }) {
		p.Version = parcelVersion
	}
	raw, err := p.encode()
	if err != nil {
		return Blob{}, fmt.Errorf("encode content: %w", err)
	}
	sum := digest.OfBytes(raw)
	data, err := compress(raw)
	if err != nil {
		return Blob{}, fmt.Errorf("compress content: %w", err)
	}
	ref := Ref{Digest: sum, Name: k.Name(sum), Secret: secret}
	return Blob{Ref: ref, Data: data, Chunks: p.Chunks}, nil
}

// encode is json.Marshal, without its look at every byte of every object: they
// are canonical.
func (p payload) encode() ([]byte, error) {
	objects := p.Objects
	p.Objects = nil
	head, err := json.Marshal(p)
	if err != nil || len(objects) == 0 || len(p.Files)+len(p.Request)+len(p.Chunks) > 0 {
		p.Objects = objects
		return json.Marshal(p)
	}
	size := len(head) + len(`,"objects":[]`)
	for _, object := range objects {
		size += len(object) + len(object)/16 + 1
	}
	raw := append(make([]byte, 0, size), head[:len(head)-1]...)
	raw = append(raw, `,"objects":[`...)
	for i, object := range objects {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = appendEscaped(raw, object)
	}
	return append(raw, "]}"...), nil
}

// appendEscaped appends canonical JSON with the escapes of json.Marshal.
func appendEscaped(raw, object []byte) []byte {
	for {
		at := bytes.IndexAny(object, "<>&")
		if at < 0 {
			return append(raw, object...)
		}
		raw = fmt.Appendf(append(raw, object[:at]...), `\u%04x`, object[at])
		object = object[at+1:]
	}
}

// Public returns the reference that may stand in a root.
func (r Ref) Public() Ref {
	if r.Secret {
		r.Digest = ""
	} else {
		r.Name = ""
	}
	return r
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
	raw, err := decompress(data)
	if err != nil {
		return p, fmt.Errorf("content %s is damaged: %w", ref.ID(), err)
	}
	if got := digest.OfBytes(raw); ref.Digest != "" && got != ref.Digest {
		return p, fmt.Errorf("content %s is not what was asked for: its digest is %s, wanted %s", ref.ID(), got, ref.Digest)
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, fmt.Errorf("content %s is damaged: %w", ref.ID(), err)
	}
	if p.Version < payloadVersion || p.Version > parcelVersion {
		return p, fmt.Errorf("content %s has format %d, this program knows formats up to %d: upgrade it", ref.ID(), p.Version, parcelVersion)
	}
	return p, nil
}

func decompress(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(r, maxPayload+1))
	if err == nil && len(raw) > maxPayload {
		err = fmt.Errorf("it is larger than %d MiB", maxPayload>>20)
	}
	return raw, err
}
