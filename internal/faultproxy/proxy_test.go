package faultproxy_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/flotilla-sh/flotilla/internal/apireq"
	"github.com/flotilla-sh/flotilla/internal/faultproxy"
)

// server counts requests and answers each with its number; a watch gets a line
// each minute.
type server struct{ requests atomic.Int32 }

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	n := s.requests.Add(1)
	recorder := httptest.NewRecorder()
	fmt.Fprintf(recorder, "answer %d", n)
	response := recorder.Result()
	if r.URL.Query().Get("watch") == "true" {
		reader, writer := io.Pipe()
		response.Body = reader
		go func() {
			for i := 1; ; i++ {
				time.Sleep(time.Minute)
				if _, err := fmt.Fprintf(writer, "event %d\n", i); err != nil {
					return
				}
			}
		}()
	}
	return response, nil
}

// line is a client and its proxy.
type line struct {
	*testing.T
	proxy  *faultproxy.Proxy
	server *server
	client *http.Client
	killed int
}

func newLine(t *testing.T) *line {
	l := &line{T: t, server: &server{}}
	l.proxy = faultproxy.New("agent", t.Logf)
	l.connect()
	return l
}

func (l *line) connect() {
	l.Helper()
	config := l.proxy.Connect(&rest.Config{Host: "http://hub", Transport: l.server}, func() { l.killed++ })
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		l.Fatal(err)
	}
	l.client = client
}

const (
	aList  = "GET /api/v1/configmaps?resourceVersion=0"
	aRead  = "GET /api/v1/namespaces/n/configmaps/a"
	aWrite = "PATCH /api/v1/namespaces/n/configmaps/a"
	aDry   = "PATCH /api/v1/namespaces/n/configmaps/a?dryRun=All"
	aWatch = "GET /api/v1/configmaps?watch=true&resourceVersion=7"
)

// do makes a request and returns the code and as much of the answer as arrives.
func (l *line) do(request string) (code int, body string, err error) {
	l.Helper()
	method, path, _ := strings.Cut(request, " ")
	r, err := http.NewRequestWithContext(l.Context(), method, "http://hub"+path, nil)
	if err != nil {
		l.Fatal(err)
	}
	response, err := l.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, 16))
	return response.StatusCode, string(raw), err
}

func TestFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		request string
		kind    faultproxy.Kind
		code    int
		body    string
		err     error
		reached int32
		killed  int
	}{
		"nothing":                {request: aWrite, kind: faultproxy.None, code: 200, body: "answer 1", reached: 1},
		"refused":                {request: aWrite, kind: faultproxy.Refuse, err: syscall.ECONNREFUSED},
		"answer lost":            {request: aWrite, kind: faultproxy.Lose, err: syscall.ECONNRESET, reached: 1},
		"answer torn":            {request: aRead, kind: faultproxy.Tear, code: 200, body: "answ", err: io.ErrUnexpectedEOF, reached: 1},
		"conflict":               {request: aWrite, kind: faultproxy.Conflict, code: 409, body: `{"kind":"Status"`},
		"no conflict of a read":  {request: aRead, kind: faultproxy.Conflict, code: 200, body: "answer 1", reached: 1},
		"too many":               {request: aRead, kind: faultproxy.TooMany, code: 429, body: `{"kind":"Status"`},
		"internal":               {request: aList, kind: faultproxy.Internal, code: 500, body: `{"kind":"Status"`},
		"expired":                {request: aWatch, kind: faultproxy.Gone, code: 410, body: `{"kind":"Status"`},
		"no expiry of a list":    {request: aList, kind: faultproxy.Gone, code: 200, body: "answer 1", reached: 1},
		"killed before":          {request: aWrite, kind: faultproxy.KillBefore, err: syscall.ECONNREFUSED, killed: 1},
		"killed after":           {request: aWrite, kind: faultproxy.KillAfter, err: syscall.ECONNREFUSED, reached: 1, killed: 1},
		"not killed at a read":   {request: aRead, kind: faultproxy.KillBefore, code: 200, body: "answer 1", reached: 1},
		"not killed at a trial":  {request: aDry, kind: faultproxy.KillAfter, code: 200, body: "answer 1", reached: 1},
		"nothing earlier":        {request: aList, kind: faultproxy.Stale, code: 200, body: "answer 1", reached: 1},
		"a read of no cache":     {request: aRead, kind: faultproxy.Stale, code: 200, body: "answer 1", reached: 1},
		"not yet in the cache":   {request: aRead + "?resourceVersion=0", kind: faultproxy.Stale, code: 404, body: `{"kind":"Status"`},
		"no silence of one read": {request: aRead, kind: faultproxy.Silence, code: 200, body: "answer 1", reached: 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLine(t)
			l.proxy.Use(func(faultproxy.Request) faultproxy.Fault { return faultproxy.Fault{Kind: tt.kind} })
			code, body, err := l.do(tt.request)
			if code != tt.code || body != tt.body || !errors.Is(err, tt.err) {
				t.Errorf("got %d %q %v", code, body, err)
			}
			if got := l.server.requests.Load(); got != tt.reached || l.killed != tt.killed {
				t.Errorf("%d requests reached the server, killed %d times", got, l.killed)
			}
		})
	}
}

func TestStaleListIsAnEarlierOne(t *testing.T) {
	l := newLine(t)
	for range 5 {
		_, _, _ = l.do(aList)
	}
	l.proxy.Use(func(faultproxy.Request) faultproxy.Fault { return faultproxy.Fault{Kind: faultproxy.Stale} })
	if _, body, err := l.do(aList); body != "answer 3" || err != nil {
		t.Errorf("got %q %v", body, err)
	}
	if _, body, _ := l.do("GET /api/v1/configmaps"); body != "answer 6" {
		t.Errorf("a list that must be fresh is %q", body)
	}
}

func TestSlowAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		l.proxy.Use(func(faultproxy.Request) faultproxy.Fault {
			return faultproxy.Fault{Kind: faultproxy.Slow, For: time.Minute}
		})
		begin := time.Now()
		if _, body, err := l.do(aRead); body != "answer 1" || err != nil || time.Since(begin) != time.Minute {
			t.Errorf("got %q %v after %s", body, err, time.Since(begin))
		}
	})
}

func TestWatches(t *testing.T) {
	for name, tt := range map[string]struct {
		fault faultproxy.Fault
		body  string
		after time.Duration
	}{
		"passes":  {faultproxy.Fault{}, "event 1\nevent 2\n", 2 * time.Minute},
		"closed":  {faultproxy.Fault{Kind: faultproxy.Close, After: 1}, "event 1\n", time.Minute},
		"silent":  {faultproxy.Fault{Kind: faultproxy.Silence, After: 1, For: time.Hour}, "event 1\n", time.Hour + time.Minute},
		"is held": {faultproxy.Fault{Kind: faultproxy.Hold, For: time.Hour}, "event 1\nevent 2\n", time.Hour + time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLine(t)
				l.proxy.Use(func(faultproxy.Request) faultproxy.Fault { return tt.fault })
				begin := time.Now()
				_, body, err := l.do(aWatch)
				if body != tt.body || err != nil || time.Since(begin) != tt.after {
					t.Errorf("got %q %v after %s", body, err, time.Since(begin))
				}
				time.Sleep(time.Hour) // lets the server end
			})
		})
	}
}

func TestDeadAndCutClientsReachNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		dead, watching := l.client, make(chan error, 1)
		go func() {
			_, _, err := l.do(aWatch)
			watching <- err
		}()
		synctest.Wait()
		l.connect()
		if err := <-watching; !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("the watch of a dead client ends with %v", err)
		}
		if _, err := dead.Get("http://hub/version"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a dead client gets %v", err)
		}
		l.proxy.Cut(true)
		if _, _, err := l.do(aRead); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a client that is cut off gets %v", err)
		}
		l.proxy.Cut(false)
		if code, _, err := l.do(aRead); code != 200 || err != nil {
			t.Errorf("afterwards it gets %d %v", code, err)
		}
		time.Sleep(time.Hour) // lets the server end
	})
}

func TestFaultAt(t *testing.T) {
	l := newLine(t)
	l.proxy.Use(faultproxy.FaultAt(2, faultproxy.KillAfter, func(q apireq.Request) bool { return q.Resource == "configmaps" }))
	for i, request := range []string{aWrite, aRead, "POST /api/v1/namespaces", aDry, aWrite, aWrite} {
		if _, _, err := l.do(request); (err != nil) != (i >= 4) {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if l.server.requests.Load() != 5 || l.killed != 1 {
		t.Errorf("%d requests, killed %d times", l.server.requests.Load(), l.killed)
	}
}

func TestPlanDependsOnSeedAndRequestAlone(t *testing.T) {
	request := func(n int) faultproxy.Request {
		return faultproxy.Request{Client: "c", N: n, Request: apireq.Request{Verb: apireq.Patch, Resource: "configmaps"}}
	}
	seen := map[faultproxy.Kind]bool{}
	for seed := range uint64(50) {
		forth, back := faultproxy.NewPlan(seed, time.Minute), faultproxy.NewPlan(seed, time.Minute)
		var there, again [40]faultproxy.Fault
		for n := range there {
			there[n], again[len(again)-1-n] = forth.Decide(request(n)), back.Decide(request(len(again)-1-n))
			seen[there[n].Kind] = true
		}
		if there != again {
			t.Errorf("seed %d: %v and %v", seed, there, again)
		}
	}
	for _, want := range []faultproxy.Kind{
		faultproxy.None, faultproxy.Refuse, faultproxy.Lose, faultproxy.Tear, faultproxy.Conflict,
		faultproxy.TooMany, faultproxy.Internal, faultproxy.KillBefore, faultproxy.KillAfter,
	} {
		if !seen[want] {
			t.Errorf("no seed does %q to a write", want)
		}
	}
}
