package render

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/flotilla-sh/flotilla/internal/cache"
	"github.com/flotilla-sh/flotilla/internal/fault"
)

// questionRoom is what is remembered of questions; a set has few bytes.
const questionRoom = 4 << 20

// Failure is an error of a render together with the questions that the render
// asked before it failed: a cluster that answers them otherwise may succeed.
type Failure struct {
	// Asked is as in Result.
	Asked []string
	// Err is the error itself.
	Err error
}

// Error returns the message of the error itself.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the error itself.
func (f *Failure) Unwrap() error { return f.Err }

// Memo renders each distinct input once, however many clusters and goroutines
// ask for it. What it returns is shared: nobody may change it.
type Memo struct {
	next      Renderer
	outcomes  *cache.LRU[outcome]
	questions *cache.LRU[[][]string] // by base digest: the sets of questions that were asked

	mu      sync.Mutex
	flights map[string]*flight
}

// outcome is what a render led to.
type outcome struct {
	result *Result
	err    error
}

// flight is a render that is under way.
type flight struct {
	done chan struct{}
	outcome
}

// NewMemo returns a Memo in front of next that remembers results of up to room
// bytes.
func NewMemo(next Renderer, room int) *Memo {
	return &Memo{
		next: next, outcomes: cache.New[outcome](room), questions: cache.New[[][]string](questionRoom),
		flights: map[string]*flight{},
	}
}

// Render implements Renderer.
func (m *Memo) Render(ctx context.Context, req Request) (*Result, error) {
	base, err := baseDigest(&req)
	if err != nil {
		return nil, err
	}
	req.base = base
	for {
		key, known, ok := m.recall(base, &req)
		if ok {
			return known.result, known.err
		}
		current, leads := m.join(key)
		if leads {
			if now, _, ok := m.recall(base, &req); ok || now != key {
				// Another render of this input has ended in between.
				m.leave(key, current)
				continue
			}
			return m.lead(ctx, key, current, req)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-current.done:
		}
		if current.concernsAll() {
			return nil, current.err
		}
	}
}

// recall looks for the outcome of an equal input. Which questions a chart asks
// may depend on the answers to others, so all sets seen are tried. Where there
// is none, key is what equal inputs have in common as far as is known.
func (m *Memo) recall(base string, req *Request) (key string, known outcome, ok bool) {
	key = base
	sets, _ := m.questions.Get(base)
	for i, asked := range sets {
		digest := withAnswers(base, asked, req)
		if known, ok := m.outcomes.Get(digest); ok {
			return digest, known, true
		}
		if i == 0 {
			key = digest
		}
	}
	return key, outcome{}, false
}

// join returns the render of key that is under way, or starts one that the
// caller then leads.
func (m *Memo) join(key string) (current *flight, leads bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if current, ok := m.flights[key]; ok {
		return current, false
	}
	current = &flight{done: make(chan struct{})}
	m.flights[key] = current
	return current, true
}

// lead renders, remembers the outcome and lets those who wait go on.
func (m *Memo) lead(ctx context.Context, key string, current *flight, req Request) (*Result, error) {
	defer m.leave(key, current)
	current.err = errors.New("the render was given up") // seen only after a panic
	result, err := m.next.Render(ctx, req)
	current.outcome = outcome{result, err}
	m.remember(&req, current.outcome)
	return result, err
}

// leave ends a render of key and lets those who wait go on.
func (m *Memo) leave(key string, current *flight) {
	m.mu.Lock()
	delete(m.flights, key)
	m.mu.Unlock()
	close(current.done)
}

// remember stores an outcome that an equal input would have again.
func (m *Memo) remember(req *Request, out outcome) {
	asked, repeatable := out.asked()
	if !repeatable {
		return
	}
	base := req.base
	m.outcomes.Put(withAnswers(base, asked, req), out, out.size())
	m.mu.Lock()
	defer m.mu.Unlock()
	sets, _ := m.questions.Get(base)
	if !slices.ContainsFunc(sets, func(set []string) bool { return slices.Equal(set, asked) }) {
		sets = append(slices.Clone(sets), asked)
		m.questions.Put(base, sets, questionSize(sets))
	}
}

// asked returns the questions behind an outcome, and whether it would be the
// same again.
func (o *outcome) asked() ([]string, bool) {
	if o.err == nil {
		return o.result.Asked, true
	}
	failure, ok := errors.AsType[*Failure](o.err)
	if !ok || fault.KindOf(o.err) != fault.Stalled {
		return nil, false
	}
	return failure.Asked, true
}

// concernsAll tells whether those who waited get the same error: not where
// only the leader gave up, nor where the cluster's answers led to it.
func (o *outcome) concernsAll() bool {
	if o.err == nil || errors.Is(o.err, context.Canceled) || errors.Is(o.err, context.DeadlineExceeded) {
		return false
	}
	_, remembered := o.asked()
	return !remembered
}

func (o *outcome) size() int {
	const least = 1024
	if o.result == nil {
		return least
	}
	return least + o.result.Size()
}

func questionSize(sets [][]string) int {
	total := 256
	for _, set := range sets {
		for _, question := range set {
			total += len(question) + 16
		}
	}
	return total
}
