package hub

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// newest notes how new the lists are asked to be.
type newest struct {
	asked []string
	down  bool
}

func (n *newest) RoundTrip(r *http.Request) (*http.Response, error) {
	if n.down {
		return nil, syscall.ECONNREFUSED
	}
	n.asked = append(n.asked, r.URL.Query().Get("resourceVersion"))
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(`{"kind":"BundleDeploymentList","apiVersion":"fleet.cattle.io/v1alpha1","metadata":{"resourceVersion":"7"},"items":[]}`)),
	}, nil
}

// TestPollNeverGoesBack: no list is older than the one before, and the first one
// and the one after an error are the truth.
func TestPollNeverGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &newest{}
		c, err := NewClient(&rest.Config{Host: "http://hub", Transport: server, QPS: -1}, "cluster-a")
		if err != nil {
			t.Fatal(err)
		}
		go c.Poll(t.Context(), make(inbox, 100), time.Minute, clock.RealClock{})
		time.Sleep(150 * time.Second)
		server.down = true
		time.Sleep(150 * time.Second)
		server.down = false
		time.Sleep(150 * time.Second)
		synctest.Wait()
		back := slices.Index(server.asked[1:], "") + 1
		if server.asked[0] != "" || back < 2 || slices.Contains(server.asked[1:back], "0") || len(server.asked) < back+2 || server.asked[back+1] != "7" {
			t.Errorf("asked for versions %q", server.asked)
		}
	})
}

// impatient is a clock that lets nobody wait, and stops after so many waits.
type impatient struct {
	clock.RealClock
	pauses []time.Duration
	enough int
	stop   context.CancelFunc
}

func (c *impatient) After(d time.Duration) <-chan time.Time {
	if c.pauses = append(c.pauses, d); len(c.pauses) == c.enough {
		c.stop()
		return nil
	}
	now := make(chan time.Time, 1)
	now <- time.Time{}
	return now
}

// TestPollOffline: however long the hub is away, the looks come more rarely
// from time to time, as rarely as those that succeed, and never in a loop.
func TestPollOffline(t *testing.T) {
	for _, every := range []time.Duration{time.Minute, 5 * time.Minute, 24 * time.Hour} {
		t.Run(every.String(), func(t *testing.T) {
			c, err := NewClient(&rest.Config{Host: "http://hub", Transport: &newest{down: true}, QPS: -1}, "cluster-a")
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			waits := &impatient{enough: 100, stop: stop}
			c.Poll(ctx, make(inbox, 100), every, waits)
			for i, pause := range waits.pauses {
				if pause < pollRetry/2 || i > 20 && pause < every*9/10 {
					t.Errorf("after %d failures a pause of %s", i+1, pause)
				}
			}
		})
	}
}
