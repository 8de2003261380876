package meter

import (
	"cmp"
	"maps"
	"slices"
)

// Counts are requests by kind.
type Counts map[Request]int

// Sum adds up the requests that match.
func (c Counts) Sum(match func(Request) bool) int {
	n := 0
	for r, count := range c {
		if match(r) {
			n += count
		}
	}
	return n
}

// Row is one kind of request and how often it was made.
type Row struct {
	Request
	N int `json:"n"`
}

// Rows returns the counts, the most frequent first.
func (c Counts) Rows() []Row {
	rows := make([]Row, 0, len(c))
	for _, r := range slices.SortedFunc(maps.Keys(c), func(a, b Request) int {
		return cmp.Or(cmp.Compare(c[b], c[a]), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Resource, b.Resource))
	}) {
		rows = append(rows, Row{Request: r, N: c[r]})
	}
	return rows
}

// Programs of Flotilla, as they call themselves.
const (
	HubAgent   = "flotilla-hub"
	FleetAgent = "flotilla-agent"
)

// Flotilla tells whether hub or agents asked.
func (r Request) Flotilla() bool { return r.Agent == HubAgent || r.Agent == FleetAgent }

// Background tells whether a request follows the clock, not the work:
// heartbeats and leadership.
func (r Request) Background() bool { return r.Resource == "leases" }

// Work tells whether a request is part of the work of hub and agents. Opening
// a watch again after its time is not.
func (r Request) Work() bool { return r.Flotilla() && !r.Background() && r.Verb != "watch" }

// PutsOfWork is what etcd has written because of the work: everything, without
// what others than hub and agents, or their heartbeats, have written.
func (u Use) PutsOfWork() float64 {
	others := u.Requests.Sum(func(r Request) bool { return r.IsWrite() && r.OK && !r.Work() })
	return u.Etcd.Puts - float64(others)
}
