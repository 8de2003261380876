package status

import (
	"fmt"
	"slices"
	"strings"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// maxNonReady is how many deployments a summary names.
const maxNonReady = 10

// Counter sums up the deployments of one parent. Every change is O(log n) plus
// a move of memory in the list of those that are in the same state and not
// ready. A Counter is not safe for concurrent use.
type Counter struct {
	noun    Noun
	entries map[string]entry
	tally
	// sorted are the keys of each state but ready.
	sorted [ready][]string
}

// NewCounter makes an empty counter of things that messages call noun.
func NewCounter(noun Noun) *Counter {
	return &Counter{noun: noun, entries: map[string]entry{}}
}

// Set puts a contribution in the place of the one of this key, and tells
// whether that changes anything.
func (c *Counter) Set(key string, x Contribution) bool { return c.set(key, entryOf(x)) }

func (c *Counter) set(key string, e entry) bool {
	old, had := c.entries[key]
	if had && old.equal(e) {
		return false
	}
	if had {
		c.tally.remove(old)
	}
	c.tally.add(e)
	if !had || old.state != e.state {
		c.unlist(key, old, had)
		c.list(key, e)
	}
	c.entries[key] = e
	return true
}

// Delete takes the contribution of a key away, and tells whether there was one.
func (c *Counter) Delete(key string) bool {
	old, had := c.entries[key]
	if had {
		c.tally.remove(old)
		c.unlist(key, old, had)
		delete(c.entries, key)
	}
	return had
}

func (c *Counter) list(key string, e entry) {
	if e.state == ready {
		return
	}
	l := &c.sorted[e.state]
	at, _ := slices.BinarySearch(*l, key)
	*l = slices.Insert(*l, at, key)
}

func (c *Counter) unlist(key string, e entry, had bool) {
	if !had || e.state == ready {
		return
	}
	l := &c.sorted[e.state]
	if at, found := slices.BinarySearch(*l, key); found {
		*l = slices.Delete(*l, at, at+1)
	}
	if len(*l) == 0 {
		*l = nil // gives back the memory of a wave of changes
	}
}

// Summary counts, and names the worst, in the order of their names within a
// state.
func (c *Counter) Summary() fleet.BundleSummary {
	s := c.tally.summary()
	for state := range ready {
		for _, key := range c.sorted[state] {
			if len(s.NonReadyResources) == maxNonReady {
				return s
			}
			s.NonReadyResources = append(s.NonReadyResources, c.resource(key))
		}
	}
	return s
}

func (c *Counter) resource(key string) fleet.NonReadyResource {
	e := c.entries[key]
	r := fleet.NonReadyResource{Name: key, State: e.state.name()}
	if e.detail != nil {
		r.Message, r.ModifiedStatus, r.NonReadyStatus = e.detail.Message, e.detail.Modified, e.detail.NonReady
	}
	return r
}

// Message speaks of every state but Ready that occurs, with its first
// deployment as the example; empty where all are ready.
func (c *Counter) Message() string {
	var lines []string
	for state := range ready {
		if n := c.count[state]; n > 0 {
			lines = append(lines, line(state.name(), n, c.noun, c.resource(c.sorted[state][0])))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

// Resources counts the objects of all deployments.
func (c *Counter) Resources() fleet.ResourceCounts { return c.resources }

// tally holds plain sums.
type tally struct {
	count     [codes]int
	resources fleet.ResourceCounts
}

func (t *tally) add(e entry)    { t.shift(e, 1) }
func (t *tally) remove(e entry) { t.shift(e, -1) }

func (t *tally) shift(e entry, sign int) {
	t.count[e.state] += sign
	addResources(&t.resources, e.resources.Value(), sign)
}

func (t *tally) merge(o tally) {
	for i, n := range o.count {
		t.count[i] += n
	}
	addResources(&t.resources, o.resources, 1)
}

func (t *tally) total() int {
	n := 0
	for _, c := range t.count {
		n += c
	}
	return n
}

// allReady is true where nothing is wrong, and so where nothing is.
func (t *tally) allReady() bool { return t.count[ready] == t.total() }

// worst is the worst state that occurs; Ready where there is none.
func (t *tally) worst() code {
	for state := range ready {
		if t.count[state] > 0 {
			return state
		}
	}
	return ready
}

// Worst is the worst state that occurs, for display: empty where all are
// ready.
func (t *tally) Worst() string {
	if t.allReady() {
		return ""
	}
	return string(t.worst().name())
}

// Display is "ready/desired".
func (t *tally) Display() string { return fmt.Sprintf("%d/%d", t.count[ready], t.total()) }

func (t *tally) summary() fleet.BundleSummary {
	return fleet.BundleSummary{
		ErrApplied: t.count[errApplied], WaitApplied: t.count[waitApplied], Modified: t.count[modified],
		OutOfSync: t.count[outOfSync], Pending: t.count[pending], NotReady: t.count[notReady],
		Offline: t.count[offline], Ready: t.count[ready], DesiredReady: t.total(),
	}
}

func addResources(sum *fleet.ResourceCounts, c fleet.ResourceCounts, sign int) {
	sum.Ready += sign * c.Ready
	sum.DesiredReady += sign * c.DesiredReady
	sum.WaitApplied += sign * c.WaitApplied
	sum.Modified += sign * c.Modified
	sum.Orphaned += sign * c.Orphaned
	sum.Missing += sign * c.Missing
	sum.Unknown += sign * c.Unknown
	sum.NotReady += sign * c.NotReady
}
