package git

// SetMaxPacks makes clones crowded sooner.
func (c *Cache) SetMaxPacks(n int) { c.maxPacks = n }
