package lease

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// shelf is an API server with one Lease.
type shelf struct {
	mu    sync.Mutex
	lease *coordinationv1.Lease
	n     int
	away  bool
}

var resource = schema.GroupResource{Resource: "leases"}

func (s *shelf) answer(change func() error) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return nil, errors.New("connection refused")
	}
	if err := change(); err != nil {
		return nil, err
	}
	return s.lease.DeepCopy(), nil
}

func (s *shelf) put(l *coordinationv1.Lease) error {
	s.n++
	s.lease = l.DeepCopy()
	s.lease.ResourceVersion = strconv.Itoa(s.n)
	return nil
}

func (s *shelf) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	return s.answer(func() error {
		if s.lease == nil {
			return apierrors.NewNotFound(resource, Name)
		}
		return nil
	})
}

func (s *shelf) Create(_ context.Context, l *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return s.answer(func() error {
		if s.lease != nil {
			return apierrors.NewAlreadyExists(resource, Name)
		}
		l = l.DeepCopy()
		l.UID = types.UID(strconv.Itoa(s.n + 1))
		return s.put(l)
	})
}

func (s *shelf) Update(_ context.Context, l *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return s.answer(func() error {
		if s.lease == nil {
			return apierrors.NewNotFound(resource, Name)
		}
		if l.ResourceVersion != s.lease.ResourceVersion {
			return apierrors.NewConflict(resource, Name, errors.New("changed"))
		}
		return s.put(l)
	})
}

func (s *shelf) holder() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease == nil {
		return ""
	}
	return *s.lease.Spec.HolderIdentity
}

// backup returns what brings back the Lease as it is now, and with it how far
// the API server has counted.
func (s *shelf) backup() (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lease, n := s.lease, s.n
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lease, s.n = lease, n
	}
}

func (s *shelf) set(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

func holder(s *shelf, identity string, c *clocktesting.FakeClock) *Holder {
	return New(Options{Leases: s, Identity: identity, Clock: c, Prepare: func(context.Context) error { return nil }})
}

// until moves the clock until a condition is met.
func until(t *testing.T, c *clocktesting.FakeClock, step time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		c.Step(step)
	}
}

// agent is one that holds the Lease or stands by.
type agent struct {
	*Holder
	acting chan struct{}
	ended  chan struct{}
	stop   func()
}

func start(h *Holder) *agent {
	ctx, stop := context.WithCancel(context.Background())
	a := &agent{Holder: h, acting: make(chan struct{}, 9), ended: make(chan struct{}, 9), stop: stop}
	go func() {
		_ = h.Hold(ctx, func(ctx context.Context) error {
			a.acting <- struct{}{}
			<-ctx.Done()
			a.ended <- struct{}{}
			return nil
		})
		a.ended <- struct{}{}
	}()
	return a
}

func TestOneActsAndTheOtherTakesOver(t *testing.T) {
	s, c := &shelf{}, clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	one := start(holder(s, "one", c))
	<-one.acting
	two := start(holder(s, "two", c))
	until(t, c, 10*time.Second, "an hour", func() bool { return c.Now().Unix() > 1_000_000+3600 })
	if len(two.acting) > 0 || s.holder() != "one" {
		t.Errorf("%s holds it, and %d others act", s.holder(), len(two.acting))
	}
	one.stop()
	<-one.ended
	until(t, c, time.Second, "two acts", func() bool { return len(two.acting) > 0 })
	if s.holder() != "two" {
		t.Errorf("%s holds it", s.holder())
	}
	two.stop()
}

func TestTheSameAgentGoesOnAtOnce(t *testing.T) {
	s, c := &shelf{}, clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	first := holder(s, "one/7", c)
	if !first.acquire(t.Context()) {
		t.Fatal("not acquired")
	}
	again := holder(s, "one/8", c)
	again.Former = func(h string) bool { return h == "one/7" }
	if !again.acquire(t.Context()) || s.holder() != "one/8" {
		t.Errorf("%s holds it", s.holder())
	}
	if still, err := first.again(t.Context()); still || err != nil {
		t.Errorf("the first one did not notice: %v %v", still, err)
	}
}

func TestNothingIsWrittenWhileTheLeaseIsNotRenewed(t *testing.T) {
	s, c := &shelf{}, clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	h := holder(s, "one", c)
	a := start(h)
	<-a.acting
	f := fence{h, roundTrip(func(*http.Request) (*http.Response, error) { return &http.Response{}, nil })}
	write := func() error {
		_, err := f.RoundTrip(&http.Request{Method: http.MethodPatch})
		return err
	}
	if err := write(); err != nil {
		t.Errorf("refused: %v", err)
	}
	s.set(true)
	until(t, c, time.Second, "writes are refused", func() bool { return errors.Is(write(), ErrNotRenewed) })
	if _, err := f.RoundTrip(&http.Request{Method: http.MethodGet}); err != nil {
		t.Errorf("a read was refused: %v", err)
	}
	s.set(false)
	until(t, c, time.Second, "writes are sent again", func() bool { return write() == nil })
	if len(a.ended) > 0 {
		t.Error("the work ended although nobody took the Lease")
	}
	a.stop()
	<-a.ended
	<-a.ended
	if s.holder() != "" {
		t.Errorf("%s holds it still", s.holder())
	}
}

// TestARestoredClusterIsBegunAnew: what the agent remembers of a cluster that was
// restored from a backup is not so any more.
func TestARestoredClusterIsBegunAnew(t *testing.T) {
	for name, harm := range map[string]func(s *shelf) (restore func()){
		"to when this agent held it":      (*shelf).backup,
		"to before there was an agent":    func(*shelf) func() { return nil },
		"to when it had another identity": func(s *shelf) func() { s.lease.Spec.HolderIdentity = ptr.To("one/before"); return s.backup() },
	} {
		t.Run(name, func(t *testing.T) {
			s, c := &shelf{}, clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
			h := holder(s, "one/now", c)
			h.Former = func(holder string) bool { return holder == "one/before" }
			a := start(h)
			<-a.acting
			restore := harm(s)
			if restore == nil {
				restore = func() { s.mu.Lock(); defer s.mu.Unlock(); s.lease, s.n = nil, 100 }
			}
			began := c.Now()
			until(t, c, 10*time.Second, "ten minutes", func() bool { return c.Since(began) > 10*time.Minute })
			if len(a.ended) > 0 {
				t.Fatal("the work ended before anything was restored")
			}
			restore()
			until(t, c, time.Second, "the work begins anew", func() bool { return len(a.acting) > 0 })
			<-a.ended
			<-a.acting
			began = c.Now()
			until(t, c, 10*time.Second, "an hour", func() bool { return c.Since(began) > time.Hour })
			if len(a.acting)+len(a.ended) > 0 || s.holder() != "one/now" {
				t.Errorf("it began anew once more; %s holds it", s.holder())
			}
			a.stop()
			<-a.ended
			<-a.ended
		})
	}
}

// TestAStrangersWriteIsNoLoss: somebody who writes to the Lease, or an answer that
// got lost, does not end the work.
func TestAStrangersWriteIsNoLoss(t *testing.T) {
	s, c := &shelf{}, clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	a := start(holder(s, "one", c))
	<-a.acting
	for range 3 {
		s.mu.Lock()
		_ = s.put(s.lease)
		s.mu.Unlock()
		began := c.Now()
		until(t, c, 10*time.Second, "five minutes", func() bool { return c.Since(began) > 5*time.Minute })
	}
	if len(a.acting)+len(a.ended) > 0 {
		t.Error("the work ended")
	}
	a.stop()
	<-a.ended
	<-a.ended
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
