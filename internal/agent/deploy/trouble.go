package deploy

import (
	"errors"
	"slices"
	"time"

	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/backoff"
	"github.com/flotilla-sh/flotilla/internal/fault"
)

// correctionCalm is how long nothing must drift for corrections to be made at
// once again.
const correctionCalm = 10 * time.Minute

// retry is when what has failed is tried again. One rollout that cannot be
// fetched fails on the whole fleet at once.
var retry = backoff.Backoff{Min: time.Second, Max: 5 * time.Minute, Jitter: 0.5}

// trouble is what has failed, and when to try again.
type trouble struct {
	// id is what failed to be deployed.
	id       string
	failures []apply.Failure
	err      error
	attempts int
	until    time.Time
	// corrected is when drift was last put right.
	corrected time.Time
}

// failed returns the trouble after one more failure; random draws from [0, 1).
func (t trouble) failed(id string, failures []apply.Failure, err error, now time.Time, random func() float64) trouble {
	if t.id != id {
		t = trouble{id: id}
	}
	t.attempts++
	t.failures, t.err = failures, err
	t.until = now.Add(t.delay(random))
	return t
}

// after returns the trouble after something was found, or not, since what has
// failed was tried: what waits for something is tried again at once.
func (t trouble) after(found bool) trouble {
	if found && fault.KindOf(t.err) == fault.Waiting {
		t.until = time.Time{}
	}
	return t
}

// correcting returns the trouble after drift was put right: the next time is
// put off for longer while somebody keeps changing things back.
func (t trouble) correcting(id string, now time.Time, random func() float64) trouble {
	if t.id != id || now.Sub(t.corrected) > correctionCalm {
		t = trouble{id: id}
	} else {
		t.attempts++
		t.until = now.Add(t.delay(random))
	}
	t.corrected = now
	return t
}

// delay is how long to wait: as long as the errors ask, where all of them
// wait for something, else longer from time to time. What only a person can mend
// may be mended on the cluster, where nobody tells of it.
func (t trouble) delay(random func() float64) time.Duration {
	switch fault.KindOf(t.err) {
	case fault.Waiting:
		return fault.AfterOf(t.err)
	case fault.Stalled:
		return backoff.Spread(retry.Max, retry.Jitter, random)
	}
	if t.err == nil && t.waits() {
		return fault.AfterOf(t.failure())
	}
	return retry.After(t.attempts, random)
}

// waits tells whether all that failed waits for something.
func (t trouble) waits() bool {
	return len(t.failures) > 0 && !slices.ContainsFunc(t.failures, func(f apply.Failure) bool { return fault.KindOf(f.Err) != fault.Waiting })
}

// failure joins what failed.
func (t trouble) failure() error {
	errs := make([]error, len(t.failures))
	for i, f := range t.failures {
		errs[i] = f.Err
	}
	return errors.Join(errs...)
}
