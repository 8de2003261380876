package hub

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// TestAFleetComesBackSpread plays the waits of a thousand agents whose hub is
// away for a while and then back: all of them are back within a minute, and no
// second is crowded.
func TestAFleetComesBackSpread(t *testing.T) {
	const agents = 1000
	for _, away := range []time.Duration{5 * time.Second, time.Minute, time.Hour} {
		t.Run(away.String(), func(t *testing.T) {
			perSecond, tries := map[int]int{}, 0
			for range agents {
				clock := clocktesting.NewFakeClock(time.Unix(0, 0))
				wait := reconnect().DelayWithReset(clock, 24*time.Hour)
				at := time.Duration(0)
				for ; at < away; tries++ {
					at += wait()
				}
				late := at - away
				if late > time.Minute {
					t.Fatalf("an agent comes back %s after the hub", late)
				}
				perSecond[int(late/time.Second)]++
			}
			for second, n := range perSecond {
				if n > agents/2 {
					t.Errorf("%d of %d agents come back in second %d", n, agents, second)
				}
			}
			if most := 6 + int(away/(20*time.Second)); tries > agents*most {
				t.Errorf("%d tries while the hub is away %s, want no more than %d for each agent", tries, away, most)
			}
		})
	}
}

// mailbox is an API server with one empty namespace, in memory.
type mailbox struct {
	mu       sync.Mutex
	down     bool
	requests []string
	open     *io.PipeWriter
	// lease is the version of the agent's Lease.
	lease string
}

func (m *mailbox) RoundTrip(r *http.Request) (*http.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return nil, syscall.ECONNREFUSED
	}
	q := r.URL.Query()
	answer := func(body io.ReadCloser) *http.Response {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: r}
	}
	if r.Method == http.MethodPatch {
		return answer(io.NopCloser(strings.NewReader(`{"metadata":{"uid":"u","resourceVersion":"` + m.lease + `"}}`))), nil
	}
	if q.Get("watch") == "" {
		m.requests = append(m.requests, "list")
		return answer(io.NopCloser(strings.NewReader(
			`{"kind":"BundleDeploymentList","apiVersion":"fleet.cattle.io/v1alpha1","metadata":{"resourceVersion":"7"},"items":[]}`))), nil
	}
	m.requests = append(m.requests, "watch "+q.Get("resourceVersion"))
	body, writer := io.Pipe()
	m.open = writer
	if q.Get("sendInitialEvents") == "true" {
		go event(writer, "BOOKMARK", `"name":"","resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}`)
	}
	return answer(body), nil
}

func event(w io.Writer, kind, metadata string) {
	_, _ = fmt.Fprintf(w, `{"type":%q,"object":{"kind":"BundleDeployment","apiVersion":"fleet.cattle.io/v1alpha1","metadata":{%s}}}`+"\n", kind, metadata)
}

// cut ends what is open and takes the server away.
func (m *mailbox) cut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = true
	_ = m.open.Close()
}

func (m *mailbox) back() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down, m.requests = false, nil
}

// beat sends a heartbeat to which the Lease has this version.
func (m *mailbox) beat(t *testing.T, c *Client, version string) {
	t.Helper()
	m.mu.Lock()
	m.lease = version
	m.mu.Unlock()
	if _, _, err := c.PatchLease(t.Context(), []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
}

func (m *mailbox) seen() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.requests...)
}

// inbox passes on the names of what was received.
type inbox chan string

func (i inbox) Received(bd *fleet.BundleDeployment) { i <- bd.Name }
func (i inbox) Vanished(string)                     {}
func (i inbox) Listed(map[string]bool)              { i <- "" }
func (i inbox) Anew()                               { i <- "anew" }

func (i inbox) next(t *testing.T) string {
	t.Helper()
	select {
	case name := <-i:
		return name
	case <-time.After(time.Minute):
		t.Fatal("nothing was received within a minute")
		return ""
	}
}

// watching returns a client that watches until the test ends, and has had the
// first list.
func watching(t *testing.T) (*Client, *mailbox, inbox) {
	t.Helper()
	klog.SetLogger(logr.Discard())
	server, in := &mailbox{}, make(inbox)
	c, err := NewClient(&rest.Config{Host: "http://hub", Transport: server, QPS: -1}, "cluster-a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { c.Watch(ctx, in) })
	t.Cleanup(func() {
		stop()
		group.Wait()
	})
	in.next(t)
	return c, server, in
}

// TestWatchResumes: after the hub was away an agent goes on where it was, with
// one request and without a list.
func TestWatchResumes(t *testing.T) {
	_, server, in := watching(t)
	for len(server.seen()) == 0 || !strings.HasPrefix(server.seen()[len(server.seen())-1], "watch") {
		time.Sleep(time.Millisecond)
	}
	event(server.open, "ADDED", `"name":"app","namespace":"cluster-a","resourceVersion":"9"`)
	if got := in.next(t); got != "app" {
		t.Fatalf("received %q, want app", got)
	}
	server.cut()
	server.back()
	deadline := time.Now().Add(time.Minute)
	for len(server.seen()) == 0 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if got := server.seen(); len(got) != 1 || got[0] != "watch 9" {
		t.Errorf("after the hub was away: %v, want one watch from where it was", got)
	}
}

// TestRestoredHubIsAskedForEverything: an agent whose hub has gone back to an
// older state would resume at a version that is yet to come, and hear nothing
// until then. The heartbeat notices.
func TestRestoredHubIsAskedForEverything(t *testing.T) {
	c, server, in := watching(t)
	last := func() string {
		seen := server.seen()
		return append([]string{""}, seen...)[len(seen)]
	}
	await := func(want string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); last() != want; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("requests: %v, want %q", server.seen(), want)
			}
		}
	}
	for !strings.HasPrefix(last(), "watch") {
		time.Sleep(time.Millisecond)
	}
	event(server.open, "ADDED", `"name":"app","namespace":"cluster-a","resourceVersion":"5000"`)
	in.next(t)
	server.beat(t, c, "5001")
	server.cut()
	server.back()
	await("watch 5000") // as after any outage
	server.beat(t, c, "1000")
	for _, want := range []string{"anew", ""} {
		if got := in.next(t); got != want {
			t.Fatalf("told %q, want %q", got, want)
		}
	}
	if got := server.seen()[1]; got == "watch 5000" {
		t.Errorf("requests: %v", server.seen())
	}
}
