package reconcile

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// Parallel runs requests side by side. One that fails does not stop the others.
type Parallel struct {
	group errgroup.Group
	mu    sync.Mutex
	errs  []error
}

// AtMost returns a Parallel that runs at most n requests at one time.
func AtMost(n int) *Parallel {
	p := &Parallel{}
	p.group.SetLimit(n)
	return p
}

// Do runs a request as soon as there is room for it.
func (p *Parallel) Do(request func() error) {
	p.group.Go(func() error {
		if err := request(); err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.errs = append(p.errs, err)
		}
		return nil
	})
}

// Wait returns what went wrong, the first few of it. Those that are only counted
// have a kind like those that are told.
func (p *Parallel) Wait() error {
	const most = 3
	_ = p.group.Wait() // Do keeps the errors
	var told, rest []error
	for _, err := range p.errs {
		same := func(other error) bool {
			return other.Error() == err.Error() && fault.KindOf(other) == fault.KindOf(err)
		}
		switch {
		case slices.ContainsFunc(told, same):
		case len(told) < most:
			told = append(told, err)
		default:
			rest = append(rest, err)
		}
	}
	if len(rest) > 0 {
		told = append(told, fault.Like(errors.Join(rest...), fmt.Errorf("and %d more", len(rest))))
	}
	return errors.Join(told...)
}
