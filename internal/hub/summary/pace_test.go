package summary

import (
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-sh/flotilla/internal/status"
)

var (
	bundle  = status.Parent{Kind: status.KindBundle, Name: types.NamespacedName{Namespace: "ws", Name: "web"}}
	cluster = status.Parent{Kind: status.KindCluster, Name: types.NamespacedName{Namespace: "ws", Name: "prod"}}
)

func TestPace(t *testing.T) {
	long := window + jitter/2
	for name, tt := range map[string]struct {
		parent  status.Parent
		moving  bool
		written time.Duration // how long ago; zero for never
		want    time.Duration
	}{
		"a first change is soon":                    {bundle, true, 0, settle},
		"the last one of a wave is soon":            {bundle, false, time.Hour, settle},
		"one after another waits":                   {bundle, true, time.Second, long - time.Second},
		"one long after another is soon":            {bundle, true, time.Hour, settle},
		"what rests waits a little":                 {bundle, false, 100 * time.Millisecond, between - 100*time.Millisecond},
		"a cluster that moves waits for the result": {cluster, true, 0, long},
		"and shows it soon":                         {cluster, false, time.Hour, settle},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
			p := newPace(clock)
			p.random = func() float64 { return 0.5 }
			if tt.written > 0 {
				p.written(tt.parent)
				clock.SetTime(clock.Now().Add(tt.written))
			}
			if got := p.wait(tt.parent, tt.moving); got != tt.want {
				t.Errorf("waits %s, want %s", got, tt.want)
			}
		})
	}
}

// TestPaceBounds plays a wave of events against a queue that keeps the earlier
// of two times, as the work queue does: no event waits too long to be shown, and
// an object is not written more often than it may.
func TestPaceBounds(t *testing.T) {
	for _, parent := range []status.Parent{bundle, cluster} {
		t.Run(string(parent.Kind), func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
			p := newPace(clock)
			p.random = r.Float64
			const step, wave, after = time.Millisecond, 20 * time.Second, 10 * time.Second
			var due, oldest time.Time
			writes, worst := 0, time.Duration(0)
			for now := time.Unix(0, 0); now.Before(time.Unix(0, 0).Add(wave + after)); now = now.Add(step) {
				clock.SetTime(now)
				if !due.IsZero() && !now.Before(due) {
					writes, worst = writes+1, max(worst, now.Sub(oldest))
					p.written(parent)
					due, oldest = time.Time{}, time.Time{}
				}
				passed := now.Sub(time.Unix(0, 0))
				if passed > wave || r.IntN(5) > 0 {
					continue
				}
				at := now.Add(p.wait(parent, passed < wave-step))
				if due.IsZero() || at.Before(due) {
					due = at
				}
				if oldest.IsZero() {
					oldest = now
				}
			}
			if most := int(wave/window) + 2; writes > most {
				t.Errorf("%d writes in a wave of %s, want no more than %d", writes, wave, most)
			}
			if worst > 2*time.Second {
				t.Errorf("a change waited %s to be shown, want no more than 2s", worst)
			}
			if !due.IsZero() {
				t.Error("a change was not written")
			}
		})
	}
}
