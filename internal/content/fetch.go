package content

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/flotilla-sh/flotilla/internal/source"
)

// Getter reads what is stored under a name.
type Getter interface {
	Get(ctx context.Context, ref Ref) (Parcel, error)
}

// Keeper remembers payloads, compressed, so that they are not read again.
type Keeper interface {
	Kept(ref Ref) (data []byte, ok bool)
	Take(ref Ref, data []byte)
}

// Fetched counts what a fetch took.
type Fetched struct {
	// Bytes were read, for the payloads that were not there. Reused ones were.
	Bytes            int64
	Payloads, Reused int
}

// Manifest is what a root stands for.
type Manifest struct {
	// Objects are the objects, sorted by identity.
	Objects []json.RawMessage
	// Refs are the root and all chunks: everything that must be kept to read
	// this manifest again.
	Refs []Ref
}

// FetchObjects reads and verifies the manifest under root: what kept has not,
// from. Only what was verified is kept. What was read is counted also where an
// error ends it.
func FetchObjects(ctx context.Context, from Getter, kept Keeper, root Ref) (Manifest, Fetched, error) {
	var m Manifest
	source := false
	f := fetch{from: from, kept: kept, root: root}
	err := f.walk(ctx, func(ref Ref, p payload) {
		m.Refs = append(m.Refs, ref)
		m.Objects = append(m.Objects, p.Objects...)
		source = source || len(p.Files) > 0 || p.Request != nil
	})
	if err == nil && source {
		// Taken for a manifest it would be an empty one, and all would be pruned.
		return Manifest{}, f.took, fmt.Errorf("content %s is a source that is to be rendered, not a manifest: upgrade the CRDs and the agent", root.Name)
	}
	return m, f.took, err
}

// FetchFiles reads and verifies the source files under root, sorted by path.
func FetchFiles(ctx context.Context, from Getter, root Ref) ([]source.File, error) {
	var files []source.File
	f := fetch{from: from, kept: memory{}, root: root}
	err := f.walk(ctx, func(_ Ref, p payload) {
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

// memory is a Keeper for one fetch.
type memory map[string][]byte

func (m memory) Kept(ref Ref) ([]byte, bool) { data, ok := m[ref.ID()]; return data, ok }
func (m memory) Take(ref Ref, data []byte)   { m[ref.ID()] = data }

// fetch is one walk from a root to its chunks.
type fetch struct {
	from Getter
	kept Keeper
	root Ref
	took Fetched

	// opened tells that the root's own parcel was read; others are the parcels
	// that were not yet, and loose the chunks of those that were.
	opened bool
	others []string
	loose  map[string][]byte
}

// walk visits the root and then its chunks, in order.
func (f *fetch) walk(ctx context.Context, visit func(Ref, payload)) error {
	p, err := f.payload(ctx, f.root)
	if err != nil {
		return err
	}
	visit(f.root, p)
	for _, ref := range p.Chunks {
		chunk, err := f.payload(ctx, ref)
		if err != nil {
			return err
		}
		visit(ref, chunk)
	}
	return nil
}

// payload returns one payload, verified.
func (f *fetch) payload(ctx context.Context, ref Ref) (payload, error) {
	if data, ok := f.kept.Kept(ref); ok {
		if p, err := decode(ref, data); err == nil {
			f.took.Reused++
			return p, nil
		}
		// What is kept is damaged: as if it were not there.
	}
	data, err := f.read(ctx, ref)
	if err != nil {
		return payload{}, fmt.Errorf("read content %s: %w", ref.ID(), err)
	}
	p, err := decode(ref, data)
	if err != nil {
		return p, err
	}
	f.took.Payloads++
	f.kept.Take(ref, data)
	return p, nil
}

// read returns a payload that is not kept.
func (f *fetch) read(ctx context.Context, ref Ref) ([]byte, error) {
	if ref.Name == "" {
		return f.chunk(ctx, ref)
	}
	parcel, err := f.get(ctx, ref)
	if err != nil {
		return nil, err
	}
	if ref.Name != f.root.Name {
		return parcel.Data, nil
	}
	return parcel.Data, f.open(parcel)
}

// chunk finds a chunk in the parcels of the root, the newest first: what is
// lacking is most often what has changed last.
func (f *fetch) chunk(ctx context.Context, ref Ref) ([]byte, error) {
	if !f.opened {
		parcel, err := f.get(ctx, f.root)
		if err != nil {
			return nil, err
		}
		if err := f.open(parcel); err != nil {
			return nil, err
		}
	}
	for {
		if data, ok := f.loose[ref.Digest]; ok {
			return data, nil
		}
		if len(f.others) == 0 {
			return nil, fmt.Errorf("no parcel of %s has it, or it is damaged there", f.root.ID())
		}
		last := len(f.others) - 1
		parcel, err := f.get(ctx, Ref{Name: f.others[last]})
		if err != nil {
			return nil, err
		}
		f.others = f.others[:last]
		if err := f.loosen(parcel); err != nil {
			return nil, err
		}
	}
}

func (f *fetch) get(ctx context.Context, ref Ref) (Parcel, error) {
	parcel, err := f.from.Get(ctx, ref)
	f.took.Bytes += int64(parcel.size())
	return parcel, err
}

// open takes in the root's own parcel.
func (f *fetch) open(p Parcel) error {
	f.opened, f.others = true, slices.Clone(p.Others)
	return f.loosen(p)
}

func (f *fetch) loosen(p Parcel) error {
	chunks, err := unpack(p.Pack)
	if f.loose == nil {
		f.loose = chunks
		return err
	}
	for digest, data := range chunks {
		f.loose[digest] = data
	}
	return err
}
