package git

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
	"weak"
)

// ReasonTooLarge is the reason of a repository or file beyond its bound.
const ReasonTooLarge = "RepositoryTooLarge"

const (
	// retryTooLarge is how soon a repository beyond the bound is asked for again.
	retryTooLarge = 30 * time.Minute
	// maxFile is the largest file that is read; nothing of this size can be
	// deployed, and each is in memory as a whole.
	maxFile = 64 << 20
)

// Usage is what a cache holds.
type Usage struct {
	// Bytes are on disk, in as many Repositories.
	Bytes        int64
	Repositories int
	// Evicted counts repositories that were removed to stay within the bound.
	Evicted int64
}

// Usage returns what was held after the last fetch that moved anything.
func (c *Cache) Usage() Usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.usage
}

// held is a repository on disk.
type held struct {
	id    string
	bytes int64
	used  time.Time
}

// sweep removes the repositories that were not used for longest, until the
// cache is within its bound. One whose files are still read stays.
func (c *Cache) sweep() error {
	c.sweeping.Lock()
	defer c.sweeping.Unlock()
	all, err := c.measure()
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b held) int { return a.used.Compare(b.used) })
	total, evicted := int64(0), int64(0)
	for _, h := range all {
		total += h.bytes
	}
	count := len(all)
	for _, h := range all {
		if c.limit <= 0 || total <= c.limit {
			break
		}
		if c.repository(h.id).remove() {
			total -= h.bytes
			evicted++
			count--
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.usage = Usage{Bytes: total, Repositories: count, Evicted: c.usage.Evicted + evicted}
	return nil
}

// measure looks at what is on disk.
func (c *Cache) measure() ([]held, error) {
	dirs, err := os.ReadDir(c.dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the Git cache: %w", err)
	}
	var all []held
	for _, d := range dirs {
		if !d.IsDir() {
			continue
		}
		h := held{id: d.Name()}
		if info, err := os.Stat(filepath.Join(c.dir, h.id, lockName)); err == nil {
			h.used = info.ModTime()
		}
		h.bytes = size(filepath.Join(c.dir, h.id))
		all = append(all, h)
	}
	return all, nil
}

// size adds up the files of a directory. What goes away meanwhile has no size.
func size(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // gone
		}
		if info, err := d.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

// remove takes a repository off the disk, unless somebody uses it.
func (r *repository) remove() bool {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	default:
		return false
	}
	r.readers = slices.DeleteFunc(r.readers, func(t weak.Pointer[tree]) bool { return t.Value() == nil })
	return len(r.readers) == 0 && os.RemoveAll(r.dir) == nil
}

// touch notes that a repository was used. It is called under the lock.
func (r *repository) touch(t *tree) {
	now := time.Now()
	_ = os.Chtimes(filepath.Join(r.dir, lockName), now, now)
	r.readers = slices.DeleteFunc(r.readers, func(t weak.Pointer[tree]) bool { return t.Value() == nil })
	r.readers = append(r.readers, weak.Make(t))
}

// errTooLarge ends a transfer.
var errTooLarge = errors.New("the server sends more than the Git cache may hold")

// bounded is a reader that fails beyond a number of bytes; 0 is no bound.
func bounded(r io.Reader, limit int64) io.Reader {
	if limit <= 0 {
		return r
	}
	return &boundedReader{r, limit}
}

type boundedReader struct {
	io.Reader
	left int64
}

// Read reads what the bound allows.
func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.Reader.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// tooLarge explains a transfer that was ended.
func (f fetching) tooLarge() error {
	return wait(retryTooLarge, ReasonTooLarge, "the repository %s sends more than %d bytes for one commit, which is all that the hub's Git cache may hold; "+
		"move what is deployed into a smaller repository, or raise --git-cache-size (and the volume of --cache-dir)", f.remote.place(), f.limit)
}
