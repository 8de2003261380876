// Package fault names the three kinds of error that a controller can meet, so
// that each is given its kind where it arises and turned into conditions and
// requeues in one place:
//
//   - stalled: a human must act; there is no retry until the input changes;
//   - waiting: something else must happen first; look again after a while;
//   - transient: everything else; retry with back-off.
package fault

import (
	"cmp"
	"time"
)

// Kind says what is to be done about an error.
type Kind int

const (
	// None is the kind of a nil error.
	None Kind = iota
	// Transient errors are retried with back-off.
	Transient
	// Waiting errors are looked at again after Error.After.
	Waiting
	// Stalled errors are not retried until the input changes.
	Stalled
)

// Error is an error of a known kind.
type Error struct {
	// Kind is what is to be done about it.
	Kind Kind
	// Reason is a CamelCase word for conditions and events.
	Reason string
	// After is how long to wait before looking again, for Waiting.
	After time.Duration
	// Err says what, where, why and what to do.
	Err error
}

// Error returns the message for the person who must act.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Stall marks err as one that only a change of the input can mend.
func Stall(reason string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: Stalled, Reason: reason, Err: err}
}

// Wait marks err as one that is expected to pass; look again after d.
func Wait(d time.Duration, reason string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: Waiting, Reason: reason, After: d, Err: err}
}

// Retry gives a transient error a reason.
func Retry(reason string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: Transient, Reason: reason, Err: err}
}

// KindOf returns the kind of err; the outermost mark wins. Of errors that were
// joined, the most hopeful decides: one that is transient, else the one that
// waits for the shortest time.
func KindOf(err error) Kind { return judge(err).kind }

// ReasonOf returns the reason of err, or fallback where it carries none.
func ReasonOf(err error, fallback string) string { return cmp.Or(judge(err).reason, fallback) }

// AfterOf returns how long a waiting error asks to wait, or zero.
func AfterOf(err error) time.Duration { return judge(err).after }
