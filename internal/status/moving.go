package status

// Moving tells whether more changes of an object's roll-up are to be expected
// at once: some of its deployments are on their way to what was last wanted.
func (b *Board) Moving(p Parent) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch p.Kind {
	case KindBundle:
		u, ok := b.bundles[p.Name]
		return ok && u.counter.moving()
	case KindCluster:
		c, ok := b.clusters[p.Name]
		return ok && c.silence == nil && c.counter.moving()
	case KindClusterGroup:
		g, ok := b.groups[p.Name]
		return ok && g.moving()
	case KindGitRepo, KindHelmOp:
		r, ok := b.repos[p]
		return ok && r.moving()
	}
	return false
}

// moving: what waits to be applied, or to become ready, will soon be so.
func (t *tally) moving() bool { return t.count[waitApplied]+t.count[notReady] > 0 }

func (r *repo) moving() bool {
	for _, u := range r.bundles {
		if u.counter.moving() {
			return true
		}
	}
	return false
}
