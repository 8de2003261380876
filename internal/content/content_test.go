package content

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/source"
)

// shelf is a Getter over what was encoded.
type shelf map[string][]byte

func (s shelf) Get(_ context.Context, ref Ref) ([]byte, error) {
	data, ok := s[ref.Name]
	if !ok {
		return nil, fmt.Errorf("no %s", ref.Name)
	}
	return data, nil
}

func (s shelf) put(enc Encoded) shelf {
	s[enc.Root.Name] = enc.Root.Data
	for _, c := range enc.Chunks {
		s[c.Name] = c.Data
	}
	return s
}

var key = Key("0123456789abcdef0123456789abcdef")

func object(kind, name, payload string) render.Object {
	raw, _ := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}, "data": map[string]any{"x": payload},
	})
	return render.Object{JSON: raw}
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
	enc, err := EncodeObjects(key, objects)
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
			m, err := FetchObjects(t.Context(), shelf{}.put(enc), enc.Root.Ref)
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
	before := shelf{}.put(encode(t, objects))
	objects[1234] = object("ConfigMap", "cm-1234", "changed")
	enc := encode(t, objects)
	moved := 0
	for name, data := range (shelf{}.put(enc)) {
		if _, known := before[name]; !known && name != enc.Root.Name {
			moved += len(data)
		}
	}
	if moved == 0 || moved > 64<<10 {
		t.Errorf("a one-line change in %d objects moves %d bytes beside the root", len(objects), moved)
	}
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
		}
	}
}

func TestNamesNeedTheKey(t *testing.T) {
	if key.Name("d") == Key("another").Name("d") {
		t.Error("names do not depend on the key")
	}
}

func TestDamageIsSeen(t *testing.T) {
	enc := encode(t, many(100))
	s := shelf{}.put(enc)
	other := encode(t, many(50)).Root
	s[enc.Chunks[0].Name] = other.Data
	_, err := FetchObjects(t.Context(), s, enc.Root.Ref)
	if err == nil || !strings.Contains(err.Error(), "is not what was asked for") {
		t.Errorf("a swapped chunk gives %v", err)
	}
}

func TestTooLargeObjectIsNamed(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	text := make([]byte, 3<<20)
	for i := range text {
		text[i] = byte(' ' + r.IntN(90))
	}
	_, err := EncodeObjects(key, []render.Object{object("ConfigMap", "huge", string(text)), object("ConfigMap", "small", "x")})
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

func FuzzDecode(f *testing.F) {
	enc, _ := EncodeObjects(key, many(2))
	f.Add(enc.Root.Data)
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = decode(Ref{Name: "x"}, data)
	})
}
