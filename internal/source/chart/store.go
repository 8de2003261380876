package chart

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// storeRoom bounds the archives that are kept on disk.
const storeRoom = 256 << 20

// store keeps archives on disk by their digest. Each access has a directory of
// its own, so that nobody gets what only another's credential opens.
type store struct {
	dir  string
	room int64
	mu   sync.Mutex
}

func newStore(dir string) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot use %s as the cache of charts: %w", dir, err)
	}
	// What an earlier process did not finish is of no use.
	unfinished, _ := filepath.Glob(filepath.Join(dir, "part-*"))
	for _, name := range unfinished {
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > 2*fetchTimeout {
			_ = os.RemoveAll(name)
		}
	}
	return &store{dir: dir, room: storeRoom}, nil
}

// temporary is a new file; who asks for it removes it.
func (s *store) temporary() (*os.File, error) {
	file, err := os.CreateTemp(s.dir, "part-*")
	if err != nil {
		return nil, fmt.Errorf("cannot write the cache of charts: %w", err)
	}
	return file, nil
}

func discard(file *os.File) {
	_ = file.Close()
	_ = os.Remove(file.Name())
}

func (s *store) path(identity, digest string) string {
	return filepath.Join(s.dir, identity, digest)
}

// open returns an archive, or nil where it is not there or damaged.
func (s *store) open(identity, digest string) *os.File {
	if !hexDigest(digest) {
		return nil
	}
	name := s.path(identity, digest)
	file, err := os.Open(name) //nolint:gosec // both parts are hex digits
	if err != nil {
		return nil
	}
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	if err == nil && hex.EncodeToString(sum.Sum(nil)) == digest {
		if _, err = file.Seek(0, io.SeekStart); err == nil {
			now := time.Now()
			_ = os.Chtimes(name, now, now)
			return file
		}
	}
	discard(file)
	return nil
}

func hexDigest(digest string) bool {
	raw, err := hex.DecodeString(digest)
	return err == nil && len(raw) == sha256.Size
}

// put moves a temporary file in, and makes room. A failure costs a download.
func (s *store) put(identity, digest string, file *os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if os.MkdirAll(filepath.Join(s.dir, identity), 0o700) == nil {
		_ = os.Rename(file.Name(), s.path(identity, digest))
	}
	s.sweep()
}

// sweep deletes what was not used for longest.
func (s *store) sweep() {
	type kept struct {
		name string
		info fs.FileInfo
	}
	var all []kept
	total := int64(0)
	names, _ := filepath.Glob(filepath.Join(s.dir, "*", "*"))
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			all = append(all, kept{name, info})
			total += info.Size()
		}
	}
	slices.SortFunc(all, func(a, b kept) int { return a.info.ModTime().Compare(b.info.ModTime()) })
	for _, k := range all {
		if total <= s.room {
			return
		}
		if os.Remove(k.name) == nil {
			total -= k.info.Size()
		}
	}
}
