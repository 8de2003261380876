package git

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// A few bytes of a pack can stand for gigabytes. While a pack is indexed, each
// object is in memory as a whole, and a delta with all that it is based on; so
// the sizes that a pack declares are looked at before.
const (
	// maxObject is the largest object: that of the largest file that GitHub takes.
	maxObject = 100 << 20
	// maxChain is how large an object may be together with all that it is based on.
	maxChain = 512 << 20
	// maxObjects is how many objects a pack may have.
	maxObjects = 1 << 20
	// smallObject is what chains of objects can hold many of.
	smallObject = 32 << 10
	// footerSize is the length of a pack's last part, without which nothing of it
	// is resolved.
	footerSize = 20
)

// inflated is the error of a pack that would need too much memory.
type inflated struct{ what string }

// Error says what the pack holds.
func (e *inflated) Error() string { return "the server sends " + e.what }

// checked passes a pack on, and fails before its end if something of it would
// need too much memory.
func checked(pack io.Reader) io.ReadCloser {
	in, out := io.Pipe()
	c := &checkedReader{pack: pack, copy: out, verdict: make(chan error, 1)}
	go func() {
		err := scan(in)
		if !isInflated(err) {
			_, _ = io.Copy(io.Discard, in)
		}
		_ = in.Close()
		c.verdict <- err
	}()
	return c
}

type checkedReader struct {
	pack    io.Reader
	copy    *io.PipeWriter
	verdict chan error
	// held is what may be the footer, which waits for the verdict.
	held   []byte
	judged bool
	err    error
}

// Read reads what was looked at.
func (c *checkedReader) Read(p []byte) (int, error) {
	for len(c.held) <= footerSize && c.err == nil && !c.judged {
		c.fill(max(len(p), 4<<10))
	}
	free := len(c.held)
	if c.err == nil {
		free -= footerSize
	}
	if free <= 0 {
		return 0, c.err
	}
	if isInflated(c.err) {
		return 0, c.err
	}
	n := copy(p, c.held[:free])
	c.held = c.held[n:]
	return n, nil
}

// fill reads more, and asks for the verdict at the end.
func (c *checkedReader) fill(size int) {
	buf := make([]byte, size)
	n, err := c.pack.Read(buf)
	c.held = append(c.held, buf[:n]...)
	if _, closed := c.copy.Write(buf[:n]); closed != nil || err != nil {
		c.err = c.judge(err)
	}
}

// judge waits for the verdict. What could not be looked at does not pass.
func (c *checkedReader) judge(err error) error {
	if c.judged {
		return err
	}
	c.judged = true
	_ = c.copy.Close()
	if verdict := <-c.verdict; isInflated(verdict) || verdict != nil && errors.Is(err, io.EOF) {
		return verdict
	}
	return err
}

// Close ends the looking.
func (c *checkedReader) Close() error {
	_ = c.judge(nil)
	return nil
}

func isInflated(err error) bool {
	_, ok := errors.AsType[*inflated](err)
	return ok
}

// scan looks at the sizes that a pack declares.
func scan(pack io.Reader) error {
	scanner := packfile.NewScanner(pack)
	_, count, err := scanner.Header()
	if err != nil {
		return err
	}
	if count > maxObjects {
		return &inflated{fmt.Sprintf("%d objects for one commit, and more than %d are not taken", count, maxObjects)}
	}
	w := weights{at: map[int64]int64{}}
	for range count {
		header, err := scanner.NextObjectHeader()
		if err != nil {
			return err
		}
		if err := w.size(header.Length); err != nil {
			return err
		}
		body := &beginning{}
		if _, _, err := scanner.NextObject(body); err != nil {
			return err
		}
		if err := w.add(header, body.data); err != nil {
			return err
		}
	}
	return nil
}

// weights are the sizes of large objects with all that they are based on, by
// where they stand in the pack.
type weights struct {
	at map[int64]int64
	// named is that of all deltas which name their base by its hash: any can be
	// based on all others.
	named int64
}

func (w *weights) size(size int64) error {
	if size > maxObject {
		return &inflated{fmt.Sprintf("a file or directory of %d bytes, and more than %d are not taken: take the file out of the branch, or keep it in Git LFS", size, maxObject)}
	}
	return nil
}

// add takes an object in, of which the beginning is known.
func (w *weights) add(header *packfile.ObjectHeader, data []byte) error {
	size, below := header.Length, int64(0)
	if header.Type.IsDelta() {
		_, rest := varint(data)
		size, _ = varint(rest)
		if err := w.size(size); err != nil {
			return err
		}
		below = w.at[header.OffsetReference]
	}
	if header.Type == plumbing.REFDeltaObject {
		below = w.named
		if size > smallObject {
			w.named += size
		}
	}
	if size > smallObject || below > 0 {
		w.at[header.Offset] = size + below
	}
	if size+below > maxChain {
		return &inflated{fmt.Sprintf("a file as changes to others, which have %d bytes together, and more than %d are not taken: keep large files in Git LFS", size+below, maxChain)}
	}
	return nil
}

// varint reads a size at the beginning of a delta.
func varint(data []byte) (size int64, rest []byte) {
	const most = 7 * 8
	for shift := 0; len(data) > 0 && shift <= most; shift += 7 {
		b := data[0]
		data = data[1:]
		size |= int64(b&0x7f) << shift
		if b < 0x80 {
			return size, data
		}
	}
	return size, data
}

// beginning keeps the first bytes that are written to it: both sizes of a delta.
type beginning struct{ data []byte }

// Write takes everything.
func (b *beginning) Write(p []byte) (int, error) {
	const sizes = 20
	b.data = append(b.data, p[:min(len(p), sizes-len(b.data))]...)
	return len(p), nil
}
