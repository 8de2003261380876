package content

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/source"
)

// shelf is a Getter over what was encoded.
type shelf map[string]Parcel

func (s shelf) Get(_ context.Context, ref Ref) (Parcel, error) {
	parcel, ok := s[ref.Name]
	if !ok {
		return parcel, fmt.Errorf("no %s", ref.Name)
	}
	return parcel, nil
}

// put stores everything open in one parcel.
func (s shelf) put(enc Encoded) shelf {
	return s.putWith(enc, enc.Open())
}

// putWith stores a root, some of its chunks and where the others are.
func (s shelf) putWith(enc Encoded, chunks []Blob, others ...string) shelf {
	s[enc.Root.Name] = Parcel{Data: enc.Root.Data, Pack: Pack(chunks), Others: others}
	for _, c := range enc.Chunks {
		if c.Secret {
			s[c.Name] = Parcel{Data: c.Data}
		}
	}
	return s
}

var key = Key("0123456789abcdef0123456789abcdef")

func object(kind, name, payload string) render.Object {
	raw, _ := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}, "data": map[string]any{"x": payload},
	})
	return render.Object{JSON: raw, APIVersion: "v1", Kind: kind, Name: name}
}

// many are objects of about a kilobyte that do not compress well.
func many(n int) []render.Object {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]render.Object, n)
	for i := range out {
		text := make([]byte, 1024)
		for j := range text {
			text[j] = byte('a' + r.IntN(26))
		}
		out[i] = object("ConfigMap", fmt.Sprintf("cm-%04d", i), string(text))
	}
	return out
}

func encode(t *testing.T, objects []render.Object) Encoded {
	t.Helper()
	enc, err := NewEncoder(key).Objects(objects)
	if err != nil {
		t.Fatal(err)
	}
	return enc
}

func TestObjectsComeBackWhole(t *testing.T) {
	for name, objects := range map[string][]render.Object{
		"none": nil, "one": many(1), "inline": many(20), "chunked": many(500),
		"secret": append(many(3), object("Secret", "s", "hunter2")),
	} {
		t.Run(name, func(t *testing.T) {
			enc := encode(t, objects)
			m, took, err := FetchObjects(t.Context(), shelf{}.put(enc), memory{}, enc.Root.Ref)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]bool{}
			for _, o := range objects {
				want[string(o.JSON)] = true
			}
			for _, o := range m.Objects {
				delete(want, string(o))
			}
			if len(want) > 0 || len(m.Objects) != len(objects) {
				t.Errorf("%d objects came back of %d, %d are missing", len(m.Objects), len(objects), len(want))
			}
			if took.Payloads != 1+len(enc.Chunks) || len(m.Refs) != took.Payloads || took.Reused != 0 {
				t.Errorf("took %+v for %d chunks", took, len(enc.Chunks))
			}
		})
	}
}

func TestOrderOfObjectsDoesNotMatter(t *testing.T) {
	objects := many(200)
	before := encode(t, objects).Root.Digest
	rand.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
	if after := encode(t, objects).Root.Digest; after != before {
		t.Error("the digest depends on the order")
	}
}

func TestOneChangeMovesLittle(t *testing.T) {
	objects := many(4000)
	before := map[string]bool{}
	for _, c := range encode(t, objects).Chunks {
		before[c.Digest] = true
	}
	objects[1234] = object("ConfigMap", "cm-1234", "changed")
	moved := 0
	for _, c := range encode(t, objects).Chunks {
		if !before[c.Digest] {
			moved += len(c.Data)
		}
	}
	if moved == 0 || moved > 64<<10 {
		t.Errorf("a one-line change in %d objects moves %d bytes beside the root", len(objects), moved)
	}
}

// TestOnlyWhatIsLackingIsFetched follows a bundle through versions, each of
// which is stored as what is new.
func TestOnlyWhatIsLackingIsFetched(t *testing.T) {
	objects, s, kept := many(1000), shelf{}, memory{}
	first := encode(t, objects)
	s.put(first)
	var others []string
	versions := []Encoded{first}
	for n := range 4 {
		objects[n*200] = object("ConfigMap", fmt.Sprintf("cm-%04d", n*200), "changed")
		enc := encode(t, objects)
		last := versions[len(versions)-1]
		others = append(others, last.Root.Name)
		s.putWith(enc, newIn(enc, last), others...)
		versions = append(versions, enc)
	}
	fetch := func(kept Keeper, enc Encoded) Fetched {
		m, took, err := FetchObjects(t.Context(), s, kept, enc.Root.Ref)
		if err != nil || len(m.Objects) != len(objects) {
			t.Fatalf("%d objects, %v", len(m.Objects), err)
		}
		return took
	}
	whole := fetch(kept, versions[0])
	if again := fetch(kept, versions[0]); again.Bytes != 0 || again.Payloads != 0 || again.Reused != whole.Payloads {
		t.Errorf("the same again took %+v", again)
	}
	if one := fetch(kept, versions[1]); one.Payloads < 2 || one.Bytes > whole.Bytes/10 {
		t.Errorf("one change took %+v, all took %+v", one, whole)
	}
	if three := fetch(kept, versions[4]); three.Bytes > whole.Bytes/5 {
		t.Errorf("three changes at once took %+v, all took %+v", three, whole)
	}
	if late := fetch(memory{}, versions[4]); late.Payloads != whole.Payloads {
		t.Errorf("the last version took a new agent %+v, the first %+v", late, whole)
	}
	delete(kept, versions[4].Root.ID())
	for id := range kept {
		kept[id] = []byte("rotten")
	}
	if mended := fetch(kept, versions[4]); mended.Reused != 0 {
		t.Errorf("what was damaged here was used: %+v", mended)
	}
}

// newIn returns the chunks of enc that last has not.
func newIn(enc, last Encoded) []Blob {
	return slices.DeleteFunc(enc.Open(), func(b Blob) bool {
		return slices.ContainsFunc(last.Chunks, func(l Blob) bool { return l.Digest == b.Digest })
	})
}

func TestSecretsAreApart(t *testing.T) {
	enc := encode(t, append(many(3), object("Secret", "s", "hunter2")))
	for _, b := range append(enc.Chunks, enc.Root) {
		p, err := decode(b.Ref, b.Data)
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := json.Marshal(p)
		if !b.Secret && bytes.Contains(raw, []byte("hunter2")) {
			t.Errorf("the secret value is in %s, which is no Secret", b.Name)
		}
		for _, c := range p.Chunks {
			if c.Secret && c.Digest != "" {
				t.Error("the root tells the digest of a secret chunk")
			}
			if !c.Secret && c.Name != "" {
				t.Error("an open chunk is found by its digest, and has a name")
			}
		}
	}
}

func TestNamesNeedTheKey(t *testing.T) {
	if key.Name("d") == Key("another").Name("d") {
		t.Error("names do not depend on the key")
	}
}

func TestDamageIsSeen(t *testing.T) {
	enc, other := encode(t, append(many(100), object("Secret", "s", "x"))), encode(t, many(50))
	chunks := enc.Open()
	flip := func(b []byte) []byte {
		b = slices.Clone(b)
		b[len(b)/2] ^= 0xff
		return b
	}
	secret := enc.Chunks[len(enc.Chunks)-1].Name
	for name, test := range map[string]struct {
		spoil func(shelf, *Parcel)
		want  string
	}{
		"swapped root":    {func(_ shelf, p *Parcel) { p.Data = other.Root.Data }, "is not what was asked for"},
		"damaged root":    {func(_ shelf, p *Parcel) { p.Data = flip(p.Data) }, "is damaged"},
		"no root":         {func(_ shelf, p *Parcel) { p.Data = nil }, "is damaged"},
		"swapped chunks":  {func(_ shelf, p *Parcel) { p.Pack = Pack(other.Open()) }, "no parcel of " + enc.Root.Name + " has it"},
		"damaged chunk":   {func(_ shelf, p *Parcel) { p.Pack = flip(p.Pack) }, "no parcel of"},
		"missing chunk":   {func(_ shelf, p *Parcel) { p.Pack = Pack(chunks[1:]) }, "no parcel of"},
		"torn parcel":     {func(_ shelf, p *Parcel) { p.Pack = p.Pack[:len(p.Pack)/2] }, "torn"},
		"no parcel":       {func(_ shelf, p *Parcel) { p.Pack, p.Others = nil, []string{"gone"} }, "no gone"},
		"damaged secret":  {func(s shelf, _ *Parcel) { s[secret] = Parcel{Data: flip(s[secret].Data)} }, "is damaged"},
		"endless parcels": {func(s shelf, p *Parcel) { p.Pack, p.Others = nil, []string{enc.Root.Name} }, "no parcel of"},
	} {
		t.Run(name, func(t *testing.T) {
			s, kept := shelf{}.put(enc), memory{}
			p := s[enc.Root.Name]
			test.spoil(s, &p)
			s[enc.Root.Name] = p
			_, _, err := FetchObjects(t.Context(), s, kept, enc.Root.Ref)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v", err)
			}
			// Nothing damaged was kept: once the store is mended, so is all.
			s.put(enc)
			if m, _, err := FetchObjects(t.Context(), s, kept, enc.Root.Ref); err != nil || len(m.Objects) != 101 {
				t.Errorf("after it was mended: %d objects, %v", len(m.Objects), err)
			}
		})
	}
}

func TestTooLargeObjectIsNamed(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	text := make([]byte, 3<<20)
	for i := range text {
		text[i] = byte(' ' + r.IntN(90))
	}
	_, err := NewEncoder(key).Objects([]render.Object{object("ConfigMap", "huge", string(text)), object("ConfigMap", "small", "x")})
	if fault.KindOf(err) != fault.Stalled || !strings.Contains(err.Error(), "ConfigMap /huge is too large") {
		t.Errorf("got %v", err)
	}
}

func TestFilesComeBackWhole(t *testing.T) {
	binary := make([]byte, 3*filePartLimit+17)
	for i := range binary {
		binary[i] = byte(i * 7)
	}
	files := []source.File{
		{Path: "a.yaml", Data: []byte("a: 1\n")}, {Path: "empty"}, {Path: "z/blob", Data: binary},
		{Path: "z/text", Data: bytes.Repeat([]byte("ä"), filePartLimit)},
	}
	enc, err := EncodeFiles(key, files)
	if err != nil {
		t.Fatal(err)
	}
	got, err := FetchFiles(t.Context(), shelf{}.put(enc), enc.Root.Ref)
	if err != nil || len(got) != len(files) {
		t.Fatalf("%d files: %v", len(got), err)
	}
	for i := range files {
		if got[i].Path != files[i].Path || !bytes.Equal(got[i].Data, files[i].Data) {
			t.Errorf("%s came back as %s with %d bytes", files[i].Path, got[i].Path, len(got[i].Data))
		}
	}
}

func TestSmallSourceIsOnePayload(t *testing.T) {
	var files []source.File
	for i := range 30 {
		files = append(files, source.File{Path: fmt.Sprintf("%02d.yaml", i), Data: bytes.Repeat([]byte("a"), 1024)})
	}
	enc, err := EncodeFiles(key, files)
	if err != nil || len(enc.Chunks) > 0 || !enc.Root.Secret {
		t.Errorf("%d chunks, a Secret: %v, %v", len(enc.Chunks), enc.Root.Secret, err)
	}
	got, err := FetchFiles(t.Context(), shelf{}.put(enc), enc.Root.Ref)
	if err != nil || !reflect.DeepEqual(got, files) {
		t.Errorf("%d files of %d came back: %v", len(got), len(files), err)
	}
}

func FuzzDecode(f *testing.F) {
	enc, _ := NewEncoder(key).Objects(many(2))
	f.Add(enc.Root.Data)
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = decode(Ref{Name: "x"}, data)
	})
}

func FuzzUnpack(f *testing.F) {
	f.Add(Pack(encodeMany(3).Chunks))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = unpack(data)
	})
}

func encodeMany(n int) Encoded {
	enc, _ := NewEncoder(key).Objects(many(n * 100))
	return enc
}
