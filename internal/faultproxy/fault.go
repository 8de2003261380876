package faultproxy

import (
	"fmt"
	"time"

	"github.com/flotilla-sh/flotilla/internal/apireq"
)

// Kind is what happens to a request.
type Kind string

const (
	// None lets the request pass.
	None Kind = ""
	// Refuse: the request never reaches the server.
	Refuse Kind = "refuse"
	// Lose: the server does what is asked, and the answer is lost.
	Lose Kind = "lose"
	// Tear: the server does what is asked, and half of the answer arrives.
	Tear Kind = "tear"
	// Slow: the server does what is asked, and its answer takes its time.
	Slow Kind = "slow"
	// Conflict, TooMany, Internal and Gone: the server answers 409, 429, 500
	// or 410, and does nothing.
	Conflict Kind = "409"
	TooMany  Kind = "429"
	Internal Kind = "500"
	Gone     Kind = "410"
	// KillBefore and KillAfter end the client before the request reaches the
	// server, and after the server did what is asked.
	KillBefore Kind = "kill before"
	KillAfter  Kind = "kill after"
	// Stale: a list comes from a cache that is behind, or a cache does not
	// have an object yet. It applies to requests that allow it only.
	Stale Kind = "stale"
	// Hold: a watch's events arrive late.
	Hold Kind = "hold"
	// Silence: a watch stays open, and no event arrives any more.
	Silence Kind = "silence"
	// Close: a watch ends after some events.
	Close Kind = "close"
)

// Fault is what happens to one request.
type Fault struct {
	Kind Kind
	// For is how long events are held, a watch is silent or an answer takes,
	// and after how long to come back after 429; zero does not say when.
	For time.Duration
	// After is the number of reads of a watch that pass before it happens.
	After int
}

// String names the fault for people.
func (f Fault) String() string {
	switch f.Kind {
	case Hold, Silence:
		return fmt.Sprintf("%s for %s after %d reads", f.Kind, f.For, f.After)
	case Slow:
		return fmt.Sprintf("%s for %s", f.Kind, f.For)
	case Close:
		return fmt.Sprintf("%s after %d reads", f.Kind, f.After)
	}
	return string(f.Kind)
}

// Request is what a decision depends on.
type Request struct {
	apireq.Request
	// Client is the name of the proxy.
	Client string
	// N counts the client's requests of this verb and resource from 1.
	N int
}

// Decider says what happens to a request.
type Decider func(Request) Fault

// fits tells whether a fault can happen to a request in the field.
func (k Kind) fits(r apireq.Request) bool {
	switch k {
	case Refuse, TooMany, Internal:
		return true
	case Lose, Tear, Slow:
		return r.Verb != apireq.Watch
	case Conflict:
		return r.Verb == apireq.Update || r.Verb == apireq.Patch
	case KillBefore, KillAfter:
		return r.Writes()
	case Stale:
		return r.Cached()
	case Gone:
		return r.Verb == apireq.Watch && r.Query.Get("resourceVersion") != ""
	case Hold, Silence, Close:
		return r.Verb == apireq.Watch
	}
	return false
}
