package git

import "context"

// SetMaxPacks makes clones crowded sooner.
func (c *Cache) SetMaxPacks(n int) { c.maxPacks = n }

// SetSmall makes fetches large sooner.
func (c *Cache) SetSmall(bytes int64) { c.small = bytes }

// FailedFetch is what is said of an error in the middle of a fetch.
func FailedFetch(ctx context.Context, r Remote, err error) error {
	return fetching{remote: r}.failed(ctx, err)
}

// Explain is what is said of an error before that.
func Explain(ctx context.Context, r Remote, err error) error { return explain(ctx, r, err) }
