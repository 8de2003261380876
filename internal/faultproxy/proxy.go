package faultproxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"github.com/flotilla-sh/flotilla/internal/apireq"
)

// Proxy stands between one client and its API server. The client may be killed
// and connect again; the counts go on.
type Proxy struct {
	name string
	// trace is told what was done to requests; nil tells nobody.
	trace func(format string, args ...any)

	mu      sync.Mutex
	decide  Decider
	cut     bool
	current *session
	numbers map[string]int
	passed  []apireq.Request
	total   int
	most    int
	beyond  func()
	earlier earlier
}

// New returns a proxy that lets everything pass.
func New(name string, trace func(format string, args ...any)) *Proxy {
	return &Proxy{name: name, trace: trace, numbers: map[string]int{}}
}

// Name is the name of the client.
func (p *Proxy) Name() string { return p.name }

// Connect begins a new life of the client: what is left of the one before
// cannot reach the server any more, as after a SIGKILL. kill ends the client.
func (p *Proxy) Connect(config *rest.Config, kill func()) *rest.Config {
	ctx, end := context.WithCancelCause(context.Background())
	s := &session{proxy: p, ctx: ctx, end: end, kill: kill}
	p.mu.Lock()
	before := p.current
	p.current = s
	p.mu.Unlock()
	if before != nil {
		before.end(errKilled)
	}
	c := rest.CopyConfig(config)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return trip{s, next} })
	return c
}

// Kill ends the client as SIGKILL would.
func (p *Proxy) Kill() {
	p.mu.Lock()
	s := p.current
	p.mu.Unlock()
	if s != nil {
		s.end(errKilled)
		s.kill()
	}
}

// Use lets decide say what happens to requests from now on; nil lets all pass.
func (p *Proxy) Use(decide Decider) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.decide = decide
}

// Cut takes the server out of reach, and brings it back.
func (p *Proxy) Cut(cut bool) {
	p.mu.Lock()
	p.cut = cut
	s := p.current
	p.mu.Unlock()
	if cut && s != nil {
		s.drop()
	}
}

// Bound has beyond called once the client has made more requests than most, ever.
func (p *Proxy) Bound(most int, beyond func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most, p.beyond = most, beyond
}

// Reset forgets the counts and the answers that were kept.
func (p *Proxy) Reset() {
	p.earlier.forget()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed, p.numbers = nil, map[string]int{}
}

// Seen returns the requests that the client made since the last Reset, and that
// match.
func (p *Proxy) Seen(match func(apireq.Request) bool) []apireq.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []apireq.Request
	for _, r := range p.passed {
		if match(r) {
			out = append(out, r)
		}
	}
	return out
}

// FaultAt decides to do something to the nth write that matches.
func FaultAt(n int, kind Kind, match func(apireq.Request) bool) Decider {
	var mu sync.Mutex
	count := 0
	return func(q Request) Fault {
		if !q.Writes() || !match(q.Request) {
			return Fault{}
		}
		mu.Lock()
		defer mu.Unlock()
		if count++; count == n {
			return Fault{Kind: kind}
		}
		return Fault{}
	}
}

var (
	errCut    = fmt.Errorf("the fault proxy has cut the line: %w", syscall.ECONNREFUSED)
	errLost   = fmt.Errorf("the fault proxy has lost the answer: %w", syscall.ECONNRESET)
	errKilled = fmt.Errorf("the fault proxy has killed this client: %w", syscall.ECONNREFUSED)
)

// begin counts a request and decides on it.
func (p *Proxy) begin(q apireq.Request) (Fault, int, error) {
	p.mu.Lock()
	p.passed = append(p.passed, q)
	p.total++
	ranAway := p.beyond != nil && p.total == p.most+1
	key := q.Verb + " " + q.Path()
	p.numbers[key]++
	n, decide, cut, beyond := p.numbers[key], p.decide, p.cut, p.beyond
	p.mu.Unlock()
	if ranAway {
		beyond()
	}
	if cut {
		return Fault{}, n, errCut
	}
	if decide == nil {
		return Fault{}, n, nil
	}
	f := decide(Request{Request: q, Client: p.name, N: n})
	if f.Kind != None && !f.Kind.fits(q) {
		f = Fault{}
	}
	return f, n, nil
}

func (p *Proxy) tell(q apireq.Request, n int, f Fault) {
	if p.trace != nil {
		p.trace("fault: %s: %s to request %d, %s", p.name, f, n, q)
	}
}

// session is one life of the client.
type session struct {
	proxy *Proxy
	ctx   context.Context
	end   context.CancelCauseFunc
	kill  func()

	mu      sync.Mutex
	watches map[*watchBody]bool
}

// die kills the client of this life.
func (s *session) die() error {
	s.end(errKilled)
	s.kill()
	return errKilled
}

// drop breaks open watches.
func (s *session) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watches {
		w.breakOff(errCut)
	}
}

type trip struct {
	*session
	next http.RoundTripper
}

// RoundTrip passes a request on, or does to it what was decided.
func (t trip) RoundTrip(r *http.Request) (*http.Response, error) {
	q := apireq.Of(r)
	if err := context.Cause(t.ctx); err != nil {
		return refused(r, err)
	}
	f, n, err := t.proxy.begin(q)
	if err != nil {
		return refused(r, err)
	}
	if f.Kind != None {
		t.proxy.tell(q, n, f)
	}
	switch f.Kind {
	case Refuse:
		return refused(r, errCut)
	case KillBefore:
		return refused(r, t.die())
	case Conflict, TooMany, Internal, Gone:
		_, _ = refused(r, nil)
		return answer(r, q, f), nil
	case Stale:
		if response := t.proxy.earlier.find(r, q); response != nil {
			return response, nil
		}
	}
	response, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	return t.after(r, q, f, response)
}

// after does to an answer what was decided.
func (t trip) after(r *http.Request, q apireq.Request, f Fault, response *http.Response) (*http.Response, error) {
	if q.Verb == apireq.Watch && response.StatusCode == http.StatusOK {
		response.Body = t.watch(r, f, response.Body)
		return response, nil
	}
	switch f.Kind {
	case Lose:
		_ = response.Body.Close()
		return nil, errLost
	case KillAfter:
		_ = response.Body.Close()
		return nil, t.die()
	case Tear:
		return torn(response)
	case Slow:
		t.linger(r, f.For)
	}
	if err := context.Cause(t.ctx); err != nil {
		_ = response.Body.Close()
		return nil, err // killed while the server was at it
	}
	return response, t.proxy.earlier.keep(q, r, response)
}

// linger waits, unless nobody waits for the answer any more.
func (t trip) linger(r *http.Request, d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.Context().Done():
	case <-t.ctx.Done():
	}
}

// torn cuts an answer in two.
func torn(response *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body[:len(body)/2]), failing{io.ErrUnexpectedEOF}))
	return response, nil
}

type failing struct{ err error }

// Read fails.
func (f failing) Read([]byte) (int, error) { return 0, f.err }

func refused(r *http.Request, err error) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return nil, err
}

// answer is a Status from the server.
func answer(r *http.Request, q apireq.Request, f Fault) *http.Response {
	code, reason := http.StatusInternalServerError, "InternalError"
	header := http.Header{"Content-Type": {"application/json"}}
	switch f.Kind {
	case Conflict:
		code, reason = http.StatusConflict, "Conflict"
	case Gone:
		code, reason = http.StatusGone, "Expired"
	case TooMany:
		code, reason = http.StatusTooManyRequests, "TooManyRequests"
		if f.For > 0 {
			header.Set("Retry-After", strconv.Itoa(max(1, int(f.For.Seconds()))))
		}
	}
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the fault proxy answers %d","reason":%q,"details":{"group":%q,"kind":%q,"name":%q},"code":%d}`,
		code, reason, q.Group, q.Resource, q.Name, code)
	return reply(r, code, header, []byte(body))
}

func reply(r *http.Request, code int, header http.Header, body []byte) *http.Response {
	return &http.Response{
		StatusCode: code, Status: strconv.Itoa(code) + " " + http.StatusText(code),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Request: r,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}
