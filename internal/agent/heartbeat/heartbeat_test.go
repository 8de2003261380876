package heartbeat

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// hub notes when it is told what, and keeps what the Lease says.
type hub struct {
	began time.Time
	at    []time.Duration
	said  []string // with each beat; empty where nothing was sent
	says  string
	err   error
	lost  bool
	// deaf makes it take nothing that is said.
	deaf bool
}

func (h *hub) PatchLease(_ context.Context, patch []byte) (string, bool, error) {
	var p metav1.PartialObjectMetadata
	if err := json.Unmarshal(patch, &p); err != nil {
		return "", false, err
	}
	told := p.Annotations[fleet.AgentReportAnnotation]
	h.at, h.said = append(h.at, time.Since(h.began)), append(h.said, told)
	if h.err != nil {
		return "", false, h.err
	}
	if told != "" && !h.deaf {
		h.says = told
	}
	return h.says, h.lost, nil
}

func TestBeat(t *testing.T) {
	version := func(v string) fleet.AgentReport { return fleet.AgentReport{KubernetesVersion: v} }
	const soon, later = 2 * time.Second, 63 * time.Second
	for name, tt := range map[string]struct {
		story func(*Beat, *hub)
		// want is what each beat says, in turn.
		want []string
	}{
		"nothing to say":           {func(*Beat, *hub) { time.Sleep(soon) }, []string{""}},
		"the first waits":          {func(*Beat, *hub) { time.Sleep(time.Second / 2) }, nil},
		"the first says something": {func(b *Beat, _ *hub) { b.Tell(version("v1")); time.Sleep(soon) }, []string{"v1"}},
		"it is said once": {func(b *Beat, _ *hub) {
			b.Tell(version("v1"))
			time.Sleep(later)
			b.Tell(version("v1"))
			time.Sleep(later)
		}, []string{"v1", "", ""}},
		"news are told at once": {func(b *Beat, _ *hub) {
			b.Tell(version("v1"))
			time.Sleep(soon)
			b.Tell(version("v2"))
			time.Sleep(soon)
		}, []string{"v1", "v2"}},
		"an agent that starts again says it again": {func(b *Beat, h *hub) {
			h.says = `{"kubernetesVersion":"v1"}`
			time.Sleep(soon)
			b.Tell(version("v1"))
			time.Sleep(soon)
			b.Tell(version("v2"))
			time.Sleep(soon)
		}, []string{"", "", "v2"}},
		"the Lease was made anew": {func(b *Beat, h *hub) {
			b.Tell(version("v1"))
			time.Sleep(soon)
			h.says = ""
			time.Sleep(later)
		}, []string{"v1", "", "v1"}},
		"the Lease is of a backup": {func(b *Beat, h *hub) {
			b.Tell(version("v1"))
			time.Sleep(soon)
			b.Tell(version("v2"))
			time.Sleep(soon)
			h.says = `{"kubernetesVersion":"v1"}`
			time.Sleep(later)
		}, []string{"v1", "v2", "", "v2"}},
		"somebody takes it off at once": {func(b *Beat, h *hub) {
			h.deaf = true
			b.Tell(version("v1"))
			time.Sleep(soon + later)
		}, []string{"v1", "v1"}},
		"an answer that is lost": {func(b *Beat, h *hub) {
			h.err = errors.New("reset")
			b.Tell(version("v1"))
			time.Sleep(soon)
			h.err = nil
			time.Sleep(8 * time.Second)
		}, []string{"v1", "v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := run(t, tt.story)
				var want []string
				for _, v := range tt.want {
					if v != "" {
						v = `{"kubernetesVersion":"` + v + `"}`
					}
					want = append(want, v)
				}
				if !slices.Equal(h.said, want) {
					t.Errorf("beats at %v say %q, want %q", h.at, h.said, want)
				}
			})
		})
	}
}

// run lets a heartbeat go through a story.
func run(t *testing.T, story func(*Beat, *hub)) *hub {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	h := &hub{began: time.Now()}
	b := New(Options{Hub: h, Identity: "agent", Interval: time.Minute, Clock: clock.RealClock{}})
	go b.Run(ctx)
	story(b, h)
	synctest.Wait()
	stop()
	synctest.Wait()
	return h
}

func TestHubThatDoesNotAnswerIsAskedOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := run(t, func(_ *Beat, h *hub) { h.err = errors.New("away"); time.Sleep(5 * time.Minute) })
		if n := len(h.at); n < 11 || n > 17 || h.at[1] > 9*time.Second || h.at[n-1]-h.at[n-2] < 20*time.Second {
			t.Errorf("beats at %v, want one after 5 s to 7.5 s, and in the end one every 20 s to 30 s", h.at)
		}
	})
}

func TestLostLeaseIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		h := &hub{began: time.Now()}
		anew := 0
		b := New(Options{Hub: h, Interval: time.Minute, Clock: clock.RealClock{}, Anew: func() { anew++ }})
		go b.Run(ctx)
		time.Sleep(2 * time.Second)
		h.lost = true
		time.Sleep(70 * time.Second)
		stop()
		synctest.Wait()
		if anew == 0 {
			t.Error("it is not told that the Lease was lost")
		}
	})
}
