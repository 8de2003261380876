package status

// Size counts what the board remembers.
func (b *Board) Size() int {
	return len(b.bundles) + len(b.clusters) + len(b.repos) + len(b.groups) + len(b.spaces)
}
