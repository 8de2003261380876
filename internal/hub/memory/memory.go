// Package memory divides the memory that a hub may have between the hub itself
// and the processes that render for it: a limit of the container is one of all
// together, and who is over it is killed with all the others.
package memory

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// mib is the unit of messages.
	mib = 1 << 20
	// base is for what the hub knows of the fleet, for one clone that is indexed,
	// and for what a render takes between two looks at it.
	base = 384 * mib
	// held is what the hub has of the output of each render.
	held = 64 * mib
	// usual is what most charts render in with ease, largest what no render
	// needs, and least what Helm does not begin without.
	usual   = 384 * mib
	largest = 1024 * mib
	least   = 128 * mib
)

// Wanted is what is to be divided, and what was asked for.
type Wanted struct {
	// Limit is what all may have together; 0 for no limit.
	Limit int64
	// CPUs is how many renders are of use at once.
	CPUs int
	// Renderers and Render are how many renders run at once, and what each may
	// have; 0 for what fits.
	Renderers int
	Render    int64
	// Bundles is what the files of the bundles of one GitRepo may have.
	Bundles int64
}

// Shares are who may have what.
type Shares struct {
	// Renderers may run at once, with Render bytes each.
	Renderers int
	Render    int64
	// Own is what the hub itself may have; 0 for no limit.
	Own int64
}

// Divide gives each its share, or says what does not fit.
func Divide(w Wanted) (Shares, error) {
	if w.Limit <= 0 {
		return Shares{Renderers: cmp.Or(w.Renderers, w.CPUs), Render: cmp.Or(w.Render, largest)}, nil
	}
	// Files of bundles are there twice, as they are and as they are stored.
	own := base + 2*w.Bundles
	room := w.Limit - own
	s := Shares{Renderers: w.Renderers, Render: w.Render}
	if s.Renderers == 0 {
		s.Renderers = int(min(max(room/(cmp.Or(s.Render, usual)+held), 1), int64(max(w.CPUs, 1))))
	}
	if s.Render == 0 {
		s.Render = min(room/int64(s.Renderers)-held, largest)
	}
	if s.Render < least && w.Render == 0 || int64(s.Renderers)*(s.Render+held) > room {
		return Shares{}, tooLittle(w, own, s)
	}
	s.Own = w.Limit - int64(s.Renderers)*s.Render
	return s, nil
}

func tooLittle(w Wanted, own int64, s Shares) error {
	render := cmp.Or(w.Render, max(s.Render, least))
	need := own + int64(s.Renderers)*(render+held)
	return fmt.Errorf("the memory limit of %d MiB is too low: the hub itself may need %d MiB (%d, and twice --git-max-bundles-size), "+
		"and %d renders at once %d MiB each (--render-memory, and %d for what they give): raise the limit to %d MiB "+
		"(resources.limits.memory of the chart), or lower --renderers, --render-memory or --git-max-bundles-size",
		w.Limit/mib, own/mib, base/mib, s.Renderers, (render+held)/mib, held/mib, (need+mib-1)/mib)
}

// Limit returns how much memory the processes of this program may have together;
// 0 where there is no limit.
func Limit() (int64, error) {
	limit, err := memlimit.FromCgroup()
	switch {
	case errors.Is(err, memlimit.ErrNoLimit), errors.Is(err, memlimit.ErrNoCgroup), errors.Is(err, memlimit.ErrCgroupsNotSupported):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read the memory limit of this program: %w", err)
	}
	return int64(min(limit, math.MaxInt64)), nil
}
