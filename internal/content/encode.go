package content

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"sort"
	"unicode/utf8"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/source"
)

// ReasonTooLarge is the reason of a stalled error about an object that no API
// server could store.
const ReasonTooLarge = "ObjectTooLarge"

// filePart is a file of a bundle's source, or a part of a large one. Text is
// kept as text because that compresses better than its base64.
type filePart struct {
	Path string `json:"path"`
	Text string `json:"text,omitempty"`
	Data []byte `json:"data,omitempty"`
}

// filePartLimit is the size above which a file is stored in parts.
const filePartLimit = 512 << 10

// item is a piece that is never split.
type item struct {
	id     string
	size   int
	secret bool
	object json.RawMessage
	file   filePart
}

// EncodeFiles packs the files of a bundle's source. All of it is secret: a
// repository may hold Secrets as plain manifests, and only the hub reads it.
func EncodeFiles(key Key, files []source.File) (Encoded, error) {
	items := fileItems(files)
	if total(items) <= inlineLimit {
		root, err := key.blob(payloadOf(items), true)
		return Encoded{Root: root}, err
	}
	chunks, err := encodeItems(items, key.chunk)
	if err != nil {
		return Encoded{}, err
	}
	return withRoot(key, chunks, true)
}

// fileItems returns the parts of files, sorted.
func fileItems(files []source.File) []item {
	var items []item
	for _, f := range files {
		for part := 0; part == 0 || part*filePartLimit < len(f.Data); part++ {
			data := f.Data[part*filePartLimit : min(len(f.Data), (part+1)*filePartLimit)]
			items = append(items, fileItem(f.Path, part, data))
		}
	}
	sort.SliceStable(items, func(i, j int) bool { return items[i].id < items[j].id })
	return items
}

func total(items []item) int {
	size := 0
	for i := range items {
		size += items[i].size
	}
	return size
}

// encodeItems cuts sorted items into chunks, which pack makes.
func encodeItems(items []item, pack func([]item) (Blob, error)) ([]Blob, error) {
	var chunks []Blob
	for _, group := range groups(items) {
		blob, err := pack(group)
		if err != nil {
			return nil, err
		}
		if len(blob.Data) > maxBlob {
			return nil, tooLarge(group, len(blob.Data))
		}
		if !blob.Secret {
			blob.Name = "" // it is found in parcels, which are named
		}
		chunks = append(chunks, blob)
	}
	return chunks, nil
}

// chunk packs items of which all are secret, or none is.
func (k Key) chunk(group []item) (Blob, error) {
	return k.blob(payloadOf(group), group[0].secret)
}

// withRoot adds the root that lists chunks.
func withRoot(key Key, chunks []Blob, secret bool) (Encoded, error) {
	refs := make([]Ref, 0, len(chunks))
	for _, chunk := range chunks {
		refs = append(refs, chunk.Public())
	}
	root, err := key.blob(payload{Chunks: refs}, secret)
	return Encoded{Root: root, Chunks: chunks}, err
}

// groups cuts sorted items into chunks. A boundary depends on the identity of
// the item before it, so that an inserted, removed or grown item moves the
// boundaries near it only.
func groups(items []item) [][]item {
	var out [][]item
	for _, secret := range []bool{false, true} {
		var group []item
		size := 0
		closeGroup := func() {
			if len(group) > 0 {
				out = append(out, group)
			}
			group, size = nil, 0
		}
		for _, it := range items {
			if it.secret != secret {
				continue
			}
			if it.size >= chunkTarget {
				closeGroup()
			}
			group, size = append(group, it), size+it.size
			if size >= chunkTarget || endsChunk(it.id) {
				closeGroup()
			}
		}
		closeGroup()
	}
	return out
}

// endsChunk is true for one identity in thirty-two.
func endsChunk(id string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return h.Sum32()%32 == 0
}

func payloadOf(items []item) payload {
	var p payload
	for _, it := range items {
		if it.object != nil {
			p.Objects = append(p.Objects, it.object)
		} else {
			p.Files = append(p.Files, it.file)
		}
	}
	return p
}

// objectItems returns objects sorted by what names them.
func objectItems(objects []render.Object) []item {
	items := make([]item, 0, len(objects))
	for _, o := range objects {
		items = append(items, item{
			id:     o.APIVersion + "/" + o.Kind + " " + o.Namespace + "/" + o.Name,
			size:   len(o.JSON),
			secret: o.APIVersion == "v1" && o.Kind == "Secret",
			object: o.JSON,
		})
	}
	sort.SliceStable(items, func(i, j int) bool { return items[i].id < items[j].id })
	return items
}

func fileItem(path string, part int, data []byte) item {
	f := filePart{Path: path}
	if utf8.Valid(data) {
		f.Text = string(data)
	} else {
		f.Data = data
	}
	return item{id: fmt.Sprintf("%s\x00%06d", path, part), size: len(data), secret: true, file: f}
}

func tooLarge(group []item, size int) error {
	largest := group[0]
	for _, it := range group {
		if it.size > largest.size {
			largest = it
		}
	}
	return fault.Stall(ReasonTooLarge, fmt.Errorf(
		"%s is too large: %d bytes, %d compressed; a Kubernetes API server stores at most about 1 MiB per object: split it",
		largest.id, largest.size, size))
}
