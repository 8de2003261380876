package content

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"

	"github.com/flotilla-sh/flotilla/internal/source"
)

// Files are the encoded files of a bundle that agents render. They are encoded
// once, however many requests they are rendered with.
type Files struct {
	chunks []Blob
}

// EncodeSharedFiles packs the files of a bundle's source for the clusters that
// render it. What may hold a secret goes into Secrets of each cluster; what
// cannot is stored once for all.
func EncodeSharedFiles(key Key, files []source.File) (Files, error) {
	secret := make(map[string]bool, len(files))
	for _, f := range files {
		secret[f.Path] = mayHoldSecret(f)
	}
	items := fileItems(files)
	for i := range items {
		items[i].secret = secret[items[i].file.Path]
	}
	chunks, err := encodeItems(items, key.chunk)
	return Files{chunks: chunks}, err
}

// EncodeSource packs a render request with its files. The request holds the
// values and is secret.
func EncodeSource(key Key, files Files, request any) (Encoded, error) {
	raw, err := json.Marshal(request)
	if err != nil {
		return Encoded{}, fmt.Errorf("encode the render request: %w", err)
	}
	blob, err := key.blob(payload{Request: raw}, true)
	if err != nil {
		return Encoded{}, err
	}
	if len(blob.Data) > maxBlob {
		return Encoded{}, tooLarge([]item{{id: "the Helm values", size: len(raw)}}, len(blob.Data))
	}
	return withRoot(key, append([]Blob{blob}, files.chunks...), false)
}

// FetchSource reads and verifies a render request and its files, sorted by
// path. The request is decoded into request. What kept has is not read again.
func FetchSource(ctx context.Context, from Getter, kept Keeper, root Ref, request any) ([]source.File, Fetched, error) {
	var raw json.RawMessage
	var parts []filePart
	f := fetch{from: from, kept: kept, root: root}
	err := f.walk(ctx, func(_ Ref, p payload) {
		parts = append(parts, p.Files...)
		if p.Request != nil {
			raw = p.Request
		}
	})
	if err != nil {
		return nil, f.took, err
	}
	if raw == nil {
		return nil, f.took, fmt.Errorf("content %s holds no render request", root.Name)
	}
	if err := json.Unmarshal(raw, request); err != nil {
		return nil, f.took, fmt.Errorf("content %s is damaged: %w", root.Name, err)
	}
	// Secret and other parts are in chunks apart; the parts of one file are not.
	var files []source.File
	for _, part := range parts {
		files = appendPart(files, part)
	}
	sort.SliceStable(files, func(i, j int) bool { return files[i].Path < files[j].Path })
	return files, f.took, nil
}
