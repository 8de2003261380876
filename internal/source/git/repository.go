package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"
	"weak"

	"golang.org/x/sys/unix"
)

// keptGenerations is how many clones of a repository stay on disk: the current
// one, and the one before it for trees that are still being read.
const keptGenerations = 2

// lockName is the file that a process locks; its time is that of the last use.
const lockName = "lock"

// lockPoll is how often a lock that another process holds is tried again.
const lockPoll = 50 * time.Millisecond

// repository is the cache's copy of one repository: a directory of clones,
// called generations, of which the last is current. A clone is made under a
// temporary name, so a generation is always whole; when one turns out to be
// damaged, or is made of too many packs, the next is cloned beside it.
type repository struct {
	dir string
	// maxPacks is how many packs, one for each fetch, a generation may have.
	maxPacks int
	// moved is set when a fetch has written to the disk.
	moved atomic.Bool
	// readers are the trees that were given out, under the turn.
	readers []weak.Pointer[tree]
	// turn is held by the one who works on the repository.
	turn chan struct{}
	// distrusted is set by readers that met damage.
	distrusted atomic.Bool
}

// distrust makes the next fetch clone again.
func (r *repository) distrust() { r.distrusted.Store(true) }

// lock waits for the repository's turn in this process, then among processes.
func (r *repository) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("the Git cache is busy with this repository: %w", ctx.Err())
	}
	f, err := r.lockFile(ctx)
	if err != nil {
		<-r.turn
		return nil, err
	}
	return func() {
		_ = f.Close()
		<-r.turn
	}, nil
}

func (r *repository) lockFile(ctx context.Context) (*os.File, error) {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot write the Git cache: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(r.dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot write the Git cache: %w", err)
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("another process holds the Git cache's lock %s: %w", f.Name(), ctx.Err())
		case <-time.After(lockPoll):
		}
	}
}

// generations lists the clones, oldest first.
func (r *repository) generations() []string {
	found, _ := filepath.Glob(filepath.Join(r.dir, "g*.git"))
	slices.Sort(found)
	return found
}

// current opens the newest generation, or returns nil where there is none that
// should be added to.
func (r *repository) current() *store {
	all := r.generations()
	if len(all) == 0 || r.distrusted.Load() {
		return nil
	}
	s, err := openStore(all[len(all)-1])
	if err != nil {
		return nil
	}
	return s
}

// draft begins a new generation under a temporary name.
func (r *repository) draft() (*store, error) {
	dir, err := os.MkdirTemp(r.dir, "new-*")
	if err != nil {
		return nil, fmt.Errorf("cannot write the Git cache: %w", err)
	}
	return createStore(dir)
}

// publish makes a draft the current generation and removes what nobody needs.
// It returns the new directory of the draft.
func (r *repository) publish(draft *store) (dir string, err error) {
	all := r.generations()
	next := 1
	if len(all) > 0 {
		_, _ = fmt.Sscanf(filepath.Base(all[len(all)-1]), "g%d.git", &next)
		next++
	}
	dir = filepath.Join(r.dir, fmt.Sprintf("g%09d.git", next))
	if err := os.Rename(draft.dir, dir); err != nil {
		return "", fmt.Errorf("cannot write the Git cache: %w", err)
	}
	r.distrusted.Store(false)
	r.sweep()
	return dir, nil
}

// sweep removes old generations and drafts that a crash left. It is called
// under the lock, when no other draft is in work.
func (r *repository) sweep() {
	drafts, _ := filepath.Glob(filepath.Join(r.dir, "new-*"))
	if all := r.generations(); len(all) > keptGenerations {
		drafts = append(drafts, all[:len(all)-keptGenerations]...)
	}
	for _, dir := range drafts {
		_ = os.RemoveAll(dir)
	}
}
