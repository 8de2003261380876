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

// EncodeObjects packs rendered objects. Secret objects go into chunks of their
// own, which are stored as Secrets.
func EncodeObjects(key Key, objects []render.Object) (Encoded, error) {
	items := make([]item, 0, len(objects))
	total, secrets := 0, 0
	for _, o := range objects {
		it, err := objectItem(o)
		if err != nil {
			return Encoded{}, err
		}
		items = append(items, it)
		total += it.size
		if it.secret {
			secrets++
		}
	}
	sort.SliceStable(items, func(i, j int) bool { return items[i].id < items[j].id })
	if secrets == 0 && total <= inlineLimit {
		root, err := key.blob(payloadOf(items), false)
		return Encoded{Root: root}, err
	}
	return encodeChunks(key, items, false)
}

// EncodeFiles packs the files of a bundle's source. All of it is secret: a
// repository may hold Secrets as plain manifests, and only the hub reads it.
func EncodeFiles(key Key, files []source.File) (Encoded, error) {
	return encodeChunks(key, fileItems(files), true)
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

func encodeChunks(key Key, items []item, secretRoot bool) (Encoded, error) {
	chunks, err := encodeItems(key, items)
	if err != nil {
		return Encoded{}, err
	}
	return withRoot(key, chunks, secretRoot)
}

// encodeItems packs sorted items into chunks.
func encodeItems(key Key, items []item) ([]Blob, error) {
	var chunks []Blob
	for _, group := range groups(items) {
		blob, err := key.blob(payloadOf(group), group[0].secret)
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

// identity is what names an object.
type identity struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
}

func objectItem(o render.Object) (item, error) {
	var id identity
	if err := json.Unmarshal(o.JSON, &id); err != nil {
		return item{}, fmt.Errorf("rendered object from %s is no JSON object: %w", o.Source, err)
	}
	return item{
		id:     id.APIVersion + "/" + id.Kind + " " + id.Metadata.Namespace + "/" + id.Metadata.Name,
		size:   len(o.JSON),
		secret: id.APIVersion == "v1" && id.Kind == "Secret",
		object: o.JSON,
	}, nil
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
