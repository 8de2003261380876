package worker

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// largestPart guards against lengths that a torn stream would make up.
const largestPart = 1 << 30

// frames are messages on a pipe: a JSON header, then parts that are sent as
// they are, because files and objects are large and need no escaping.
type frames struct {
	r *bufio.Reader
	w *bufio.Writer
}

func newFrames(r io.Reader, w io.Writer) *frames {
	const buffer = 64 << 10
	return &frames{r: bufio.NewReaderSize(r, buffer), w: bufio.NewWriterSize(w, buffer)}
}

// send writes one message.
func (f *frames) send(header any, parts [][]byte) error {
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	if err := f.sendPart(text); err != nil {
		return err
	}
	if err := binary.Write(f.w, binary.BigEndian, uint32(len(parts))); err != nil {
		return err
	}
	for _, part := range parts {
		if err := f.sendPart(part); err != nil {
			return err
		}
	}
	return f.w.Flush()
}

func (f *frames) sendPart(part []byte) error {
	if err := binary.Write(f.w, binary.BigEndian, uint32(len(part))); err != nil {
		return err
	}
	_, err := f.w.Write(part)
	return err
}

// receive reads one message; its header is decoded into header.
func (f *frames) receive(header any) ([][]byte, error) {
	text, err := f.receivePart()
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, header); err != nil {
		return nil, err
	}
	count, err := f.length()
	if err != nil {
		return nil, err
	}
	var parts [][]byte
	for range count {
		part, err := f.receivePart()
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

func (f *frames) receivePart() ([]byte, error) {
	n, err := f.length()
	if err != nil {
		return nil, err
	}
	part := make([]byte, n)
	_, err = io.ReadFull(f.r, part)
	return part, err
}

func (f *frames) length() (uint32, error) {
	var n uint32
	if err := binary.Read(f.r, binary.BigEndian, &n); err != nil {
		return 0, err
	}
	if n > largestPart {
		return 0, fmt.Errorf("a part of %d bytes is too large", n)
	}
	return n, nil
}
