package deploy

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/agent/state"
	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/fault"
)

const (
	// spellStored is how much of the time that a step was given is stored at
	// once, for the next life of the agent.
	spellStored = time.Minute
	// spellSure is for how long what watches have told counts as a look.
	spellSure = 10 * time.Second
)

// spell is for how long a step of a release is waited for. It counts the time
// between two looks at the cluster only: while nobody can look, because the
// cluster is out of reach or the agent does not run, nobody can tell that the
// step takes too long.
type spell struct {
	// step names the hook or wave.
	step  string
	spent time.Duration
	// at is when it was last looked at; zero where a look has failed since.
	at time.Time
}

// looked returns the spell after a look; stored is what an earlier life of the
// agent has counted.
func (s spell) looked(step string, stored time.Duration, now time.Time) spell {
	if s.step != step {
		return spell{step: step, spent: stored, at: now}
	}
	if !s.at.IsZero() {
		s.spent += now.Sub(s.at)
	}
	s.at = now
	return s
}

// lost returns the spell after a look that has failed.
func (s spell) lost() spell {
	s.at = time.Time{}
	return s
}

// unanswered tells whether err is that of a cluster out of reach.
func unanswered(err error) bool {
	return fault.KindOf(err) == fault.Transient && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown
}

// doubtful tells whether it must be made sure that the cluster can be looked at,
// before more is counted of what the step was given.
func (s spell) doubtful(step string, given time.Duration, now time.Time) bool {
	if s.step != step || s.spent >= given {
		return false
	}
	passed := now.Sub(s.at)
	return s.at.IsZero() || passed >= spellSure || s.spent+passed >= given
}

// stepOf names what a release is waiting for.
func stepOf(r *state.Release) string {
	return fmt.Sprint(r.Run, " ", r.Phase, " ", r.Wave, " ", len(r.Done))
}

// left notes a look at the present step, and returns what is left of the time
// that it was given. Now and then what was counted is stored.
func (r *release) left(ctx context.Context, given time.Duration) (time.Duration, error) {
	now := r.record.Release
	var s spell
	r.update(r.record.Name, func(j *job) {
		j.spell = j.spell.looked(stepOf(now), now.Spent, r.clock.Now())
		s = j.spell
	})
	if now.Spent >= given || s.spent-now.Spent < spellStored {
		return given - s.spent, nil
	}
	return given - s.spent, r.store(ctx, func(now *state.Release) { now.Spent = s.spent.Truncate(time.Second) })
}

// sure reads what is not ready anew where it is long since anything was heard of
// it: no event comes from a cluster that is out of reach.
func (r *release) sure(ctx context.Context, given time.Duration, unready []laggard) error {
	doubtful := false
	r.update(r.record.Name, func(j *job) {
		doubtful = j.spell.doubtful(stepOf(r.record.Release), given, r.clock.Now())
	})
	if !doubtful {
		return nil
	}
	refs := make([]apply.Ref, 0, len(unready))
	for _, l := range unready {
		refs = append(refs, l.ref)
	}
	return r.observer.Read(ctx, r.record.Owner().Label, refs)
}
