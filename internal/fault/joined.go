package fault

import (
	"cmp"
	"errors"
	"iter"
	"time"
)

// Like gives err the kind of another error, with its reason and its time to
// wait: err says in its own words what of has to say. Where nothing is wrong
// there is nothing to say.
func Like(of, err error) error {
	if of == nil || err == nil {
		return nil
	}
	return &Error{Kind: KindOf(of), Reason: ReasonOf(of, ""), After: AfterOf(of), Err: err}
}

// Each yields the errors that were joined to err, or err itself where it is one.
func Each(err error) iter.Seq[error] {
	return func(yield func(error) bool) { each(err, yield) }
}

func each(err error, yield func(error) bool) bool {
	if err == nil {
		return true
	}
	parts := partsOf(err)
	for _, part := range parts {
		if !each(part, yield) {
			return false
		}
	}
	return len(parts) > 0 || yield(err)
}

// Outermost yields for each error that was joined to err, at any depth, the
// outermost of its layers that is a T; the second value tells whether it has one.
func Outermost[T any](err error) iter.Seq2[T, bool] {
	return func(yield func(T, bool) bool) { outermost(err, yield) }
}

func outermost[T any](err error, yield func(T, bool) bool) bool {
	for err != nil {
		if found, ok := err.(T); ok {
			return yield(found, true)
		}
		if parts := partsOf(err); len(parts) > 0 {
			for _, part := range parts {
				if !outermost(part, yield) {
					return false
				}
			}
			return true
		}
		if err = errors.Unwrap(err); err == nil {
			var none T
			return yield(none, false)
		}
	}
	return true
}

// partsOf returns what was joined to err itself; nothing where it is one error.
func partsOf(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // each layer is looked at in turn
		return joined.Unwrap()
	}
	return nil
}

// verdict is what an error asks for as a whole.
type verdict struct {
	kind   Kind
	after  time.Duration
	reason string
}

// judge weighs the errors that were joined to err: what can pass soonest
// decides, so that nothing waits for long because something beside it does. The
// first of those gives the reason; where it has none, the first that has one.
func judge(err error) (v verdict) {
	spare := ""
	for mark, marked := range Outermost[*Error](err) {
		one := verdict{kind: Transient}
		if marked {
			one = verdict{mark.Kind, mark.After, mark.Reason}
		}
		spare = cmp.Or(spare, one.reason)
		if v.kind == None || cmp.Or(cmp.Compare(one.kind, v.kind), cmp.Compare(one.after, v.after)) < 0 {
			v = one
		}
	}
	v.reason = cmp.Or(v.reason, spare)
	return v
}
