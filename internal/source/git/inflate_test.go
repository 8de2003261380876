package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"io"
	"testing"
	"testing/iotest"

	"github.com/go-git/go-git/v5/plumbing"
)

// packOfObjects writes a pack; objects are written as they come.
func packOfObjects(t *testing.T, count int, objects ...[]byte) []byte {
	t.Helper()
	pack := append([]byte("PACK\x00\x00\x00\x02"), binary.BigEndian.AppendUint32(nil, uint32(count))...)
	for _, object := range objects {
		pack = append(pack, object...)
	}
	sum := sha1.Sum(pack)
	return append(pack, sum[:]...)
}

// packed is an object as a pack has it; above stands between header and body.
func packed(t *testing.T, kind plumbing.ObjectType, size int64, body io.Reader, above ...byte) []byte {
	t.Helper()
	out := []byte{byte(kind)<<4 | byte(size&15)}
	for rest := size >> 4; rest > 0; rest >>= 7 {
		out[len(out)-1] |= 0x80
		out = append(out, byte(rest&0x7f))
	}
	out = append(out, above...)
	var deflated bytes.Buffer
	w := zlib.NewWriter(&deflated)
	if _, err := io.Copy(w, body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return append(out, deflated.Bytes()...)
}

func sizes(all ...int64) []byte {
	var out []byte
	for _, size := range all {
		out = binary.AppendUvarint(out, uint64(size))
	}
	return out
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestPacksThatInflateAreRefused(t *testing.T) {
	blob := func(size int64) []byte {
		return packed(t, plumbing.BlobObject, size, io.LimitReader(zeros{}, size))
	}
	delta := func(size int64) []byte {
		body := append(sizes(10, size), 0)
		return packed(t, plumbing.REFDeltaObject, int64(len(body)), bytes.NewReader(body), make([]byte, 20)...)
	}
	offset := func(back byte, size int64) []byte {
		body := append(sizes(10, size), 0)
		return packed(t, plumbing.OFSDeltaObject, int64(len(body)), bytes.NewReader(body), back)
	}
	small := blob(10)
	link := offset(byte(len(offset(9, 90<<20))), 90<<20)
	for name, tt := range map[string]struct {
		pack    []byte
		refused bool
	}{
		"small":               {packOfObjects(t, 1, small), false},
		"many":                {packOfObjects(t, 3, small, blob(70_000), blob(1<<20)), false},
		"large":               {packOfObjects(t, 2, small, blob(maxObject+1)), true},
		"large first":         {packOfObjects(t, 2, blob(maxObject+1), small), true},
		"as large as allowed": {packOfObjects(t, 1, blob(maxObject)), false},
		"large delta":         {packOfObjects(t, 2, small, delta(maxObject+1)), true},
		"deltas":              {packOfObjects(t, 3, small, delta(1<<20), delta(2<<20)), false},
		"deltas upon deltas":  {packOfObjects(t, 7, small, delta(90<<20), delta(90<<20), delta(90<<20), delta(90<<20), delta(90<<20), delta(90<<20)), true},
		"chain":               {packOfObjects(t, 7, small, offset(byte(len(small)), 90<<20), link, link, link, link, link), true},
		"short chain":         {packOfObjects(t, 4, small, offset(byte(len(small)), 90<<20), link, link), false},
		"too many":            {packOfObjects(t, maxObjects+1, small), true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, from := range []io.Reader{bytes.NewReader(tt.pack), iotest.HalfReader(bytes.NewReader(tt.pack)), iotest.DataErrReader(bytes.NewReader(tt.pack))} {
				c := checked(from)
				got, err := io.ReadAll(c)
				if isInflated(err) != tt.refused || !tt.refused && err != nil {
					t.Fatalf("got %v", err)
				}
				if tt.refused == bytes.Equal(got, tt.pack) {
					t.Errorf("%d of %d bytes passed", len(got), len(tt.pack))
				}
				if tt.refused && len(got) > len(tt.pack)-footerSize {
					t.Error("the end of the pack has passed")
				}
				_ = c.Close()
			}
		})
	}
}

func TestWhatIsNoPackDoesNotPass(t *testing.T) {
	whole := packOfObjects(t, 1, packed(t, plumbing.BlobObject, 10, io.LimitReader(zeros{}, 10)))
	for name, data := range map[string][]byte{"nothing": nil, "a text": []byte("not a pack, and longer than a footer is"), "a part": whole[:len(whole)/2]} {
		if _, err := io.ReadAll(checked(bytes.NewReader(data))); err == nil {
			t.Errorf("%s passed", name)
		}
	}
	c := checked(io.MultiReader(bytes.NewReader(whole[:20]), iotest.ErrReader(io.ErrNoProgress)))
	if _, err := io.ReadAll(c); err != io.ErrNoProgress { //nolint:errorlint // as it came
		t.Errorf("got %v, want the error of the connection", err)
	}
}
