package deploy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flotilla-sh/flotilla/internal/apply"
	"github.com/flotilla-sh/flotilla/internal/observe"
)

// silence is how long the controller of a custom resource may take to say the
// first word about it, before the next wave begins without one.
const silence = 10 * time.Second

// laggard is an object that is not ready.
type laggard struct {
	ref apply.Ref
	// why is for people.
	why string
	// silent is true where nothing was heard of its controller yet.
	silent bool
}

// patience is what the next wave waits for, beside what is not ready.
type patience struct {
	// jobs is true where Jobs must be complete.
	jobs bool
	// status returns whether an object must have a status.
	status func(apply.Ref) bool
}

// unready says what of the waves up to waves[index] is not ready. Before the
// next wave Jobs must be complete, and custom resources of this wave are given a
// moment to get a status.
func (r *release) unready(ctx context.Context, waves []int, index int) ([]laggard, error) {
	through, wants := r.plan.Through(waves[index]), patience{status: func(apply.Ref) bool { return false }}
	if index < len(waves)-1 {
		given := silence
		if all := timeout(r.record.Options); all > 0 {
			given = min(given, all)
		}
		left, err := r.left(ctx, given)
		if err != nil {
			return nil, err
		}
		earlier := map[apply.Ref]bool{}
		if index > 0 {
			for _, ref := range r.plan.Through(waves[index-1]) {
				earlier[ref] = true
			}
		}
		wants = patience{jobs: true, status: func(ref apply.Ref) bool { return left > 0 && !earlier[ref] }}
	}
	findings := r.observer.Findings(r.record.Owner().Label)
	return unreadyOf(r.record.Inventory, findings, func(ref apply.Ref) bool { return slices.Contains(through, ref) }, wants), nil
}

func unreadyOf(inventory apply.Inventory, findings map[apply.Ref]observe.Finding, concerns func(apply.Ref) bool, wants patience) []laggard {
	var out []laggard
	for _, e := range inventory {
		if !concerns(e.Ref) {
			continue
		}
		finding, known := findings[e.Identity()]
		switch {
		case known && !finding.Health.Ready:
			out = append(out, laggard{ref: e.Ref, why: finding.Health.Message})
		case known && finding.Health.Running && wants.jobs:
			out = append(out, laggard{ref: e.Ref, why: "is not complete"})
		case known && finding.Health.Silent && wants.status(e.Ref):
			out = append(out, laggard{ref: e.Ref, why: "has no status yet", silent: true})
		case !known && e.Health:
			out = append(out, laggard{ref: e.Ref, why: "its state was not read yet"})
		}
	}
	return out
}

func allSilent(unready []laggard) bool {
	return !slices.ContainsFunc(unready, func(l laggard) bool { return !l.silent })
}

// lagging names the first objects that are not ready.
func lagging(unready []laggard) string {
	var named []string
	for _, l := range unready[:min(len(unready), maxNamed)] {
		named = append(named, l.ref.String()+": "+l.why)
	}
	text := strings.Join(named, "; ")
	if more := len(unready) - maxNamed; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}
