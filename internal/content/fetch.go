package content

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/flotilla-sh/flotilla/internal/source"
)

// Getter reads one stored payload, compressed as it is stored.
type Getter interface {
	Get(ctx context.Context, ref Ref) ([]byte, error)
}

// Manifest is what a root stands for.
type Manifest struct {
	// Objects are the objects, sorted by identity.
	Objects []json.RawMessage
	// Refs are the root and all chunks: everything that must be kept to read
	// this manifest again.
	Refs []Ref
}

// FetchObjects reads and verifies the manifest under root.
func FetchObjects(ctx context.Context, from Getter, root Ref) (Manifest, error) {
	var m Manifest
	source := false
	err := walk(ctx, from, root, func(ref Ref, p payload) {
		m.Refs = append(m.Refs, ref)
		m.Objects = append(m.Objects, p.Objects...)
		source = source || len(p.Files) > 0 || p.Request != nil
	})
	if err == nil && source {
		// Taken for a manifest it would be an empty one, and all would be pruned.
		return Manifest{}, fmt.Errorf("content %s is a source that is to be rendered, not a manifest: upgrade the CRDs and the agent", root.Name)
	}
	return m, err
}

// FetchFiles reads and verifies the source files under root, sorted by path.
func FetchFiles(ctx context.Context, from Getter, root Ref) ([]source.File, error) {
	var files []source.File
	err := walk(ctx, from, root, func(_ Ref, p payload) {
		for _, part := range p.Files {
			files = appendPart(files, part)
		}
	})
	return files, err
}

// appendPart adds a part; parts of one file follow each other.
func appendPart(files []source.File, part filePart) []source.File {
	data := part.Data
	if part.Text != "" {
		data = []byte(part.Text)
	}
	if n := len(files); n > 0 && files[n-1].Path == part.Path {
		files[n-1].Data = append(files[n-1].Data, data...)
		return files
	}
	return append(files, source.File{Path: part.Path, Data: data})
}

// walk visits the root and then its chunks, in order.
func walk(ctx context.Context, from Getter, root Ref, visit func(Ref, payload)) error {
	p, err := get(ctx, from, root)
	if err != nil {
		return err
	}
	visit(root, p)
	for _, ref := range p.Chunks {
		chunk, err := get(ctx, from, ref)
		if err != nil {
			return err
		}
		visit(ref, chunk)
	}
	return nil
}

func get(ctx context.Context, from Getter, ref Ref) (payload, error) {
	data, err := from.Get(ctx, ref)
	if err != nil {
		return payload{}, fmt.Errorf("read content %s: %w", ref.Name, err)
	}
	return decode(ref, data)
}
