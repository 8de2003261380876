package git

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

const (
	// SmallFetch is how many bytes a transfer may bring beside others. The disk
	// needs room for one of these for everybody who fetches at one time.
	SmallFetch = 32 << 20
	// roomPoll is how often a transfer that waits for room looks for it.
	roomPoll = time.Second
)

// errSmall ends a transfer that is not small.
var errSmall = errors.New("the transfer is not small")

// fetchWithin ends a transfer beyond so many bytes; 0 is no bound. One that is
// not small has its turn alone, and waits until the disk has room for it, so that
// a cache with a bound never has more than twice that and some small transfers.
func (c *Cache) fetchWithin(ctx context.Context, r Remote, want plumbing.Hash, limit int64) (*tree, error) {
	if c.overfull() {
		// What was in use after the last fetch may be free now.
		if err := c.sweep(); err != nil {
			return nil, err
		}
	}
	f := fetching{remote: r, want: want, limit: limit, small: c.small}
	if limit <= c.small {
		f.small = 0
	}
	files, err := c.attempt(ctx, f)
	if !errors.Is(err, errSmall) {
		return files, err
	}
	leave, err := c.enter(ctx, r, limit)
	if err != nil {
		return nil, err
	}
	defer leave()
	f.small = 0
	return c.attempt(ctx, f)
}

// attempt fetches what is missing, and keeps the cache within its bound.
func (c *Cache) attempt(ctx context.Context, f fetching) (*tree, error) {
	f.repo = c.repository(f.remote.repositoryID())
	files, err := f.repo.open(ctx, f)
	if f.repo.moved.Swap(false) {
		if sweepErr := c.sweep(); err == nil {
			err = sweepErr
		}
	}
	return files, err
}

// overfull tells whether clones in use kept the cache from its bound.
func (c *Cache) overfull() bool { return c.limit > 0 && c.Usage().Bytes > c.limit }

// enter waits for the turn of a transfer that may bring so many bytes, and for
// room.
func (c *Cache) enter(ctx context.Context, r Remote, bytes int64) (leave func(), err error) {
	for {
		select {
		case c.large <- struct{}{}:
		case <-ctx.Done():
			return nil, noRoom(ctx, r)
		}
		// Trees that nobody reads any more free their clones.
		runtime.GC()
		if err = c.sweep(); err == nil && c.Usage().Bytes+bytes <= 2*c.limit {
			return func() { <-c.large }, nil
		}
		<-c.large
		if err != nil {
			return nil, err
		}
		select {
		case <-time.After(roomPoll):
		case <-ctx.Done():
			return nil, noRoom(ctx, r)
		}
	}
}

func noRoom(ctx context.Context, r Remote) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return &fault.Error{Kind: fault.Transient, Reason: ReasonCacheDiskFull, Err: fmt.Errorf(
		"%s is waiting for other large repositories, whose clones are fetched or in use: raise --git-cache-size (and the volume of --cache-dir) if that goes on; it will be tried again", r.place())}
}
