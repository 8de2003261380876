package webhook

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// perSecond and burst are how many requests of one sender are looked at.
	perSecond, burst = 50, 200
	// maxSources is how many senders are told apart; all others share one limit.
	maxSources = 4096
	// lookPerSecond and lookBurst are how often one GitRepo is told. What is more
	// is told together, as soon as that is over.
	lookPerSecond, lookBurst = 1, 5
	// keepSecret is how long a Secret is not read again, so that a storm of
	// webhooks is none of reads.
	keepSecret = 2 * time.Second
)

// source is who sends a request: the address, or what an ingress says of it. An
// IPv6 network counts as one. Only a peer of a private network can be an ingress.
func source(req *http.Request) string {
	host, _, err := net.SplitHostPort(req.RemoteAddr)
	if err != nil {
		return ""
	}
	peer, err := netip.ParseAddr(host)
	if err != nil {
		return ""
	}
	if hops := req.Header.Values("X-Forwarded-For"); len(hops) > 0 && (peer.IsPrivate() || peer.IsLoopback()) {
		last := hops[len(hops)-1]
		if a, err := netip.ParseAddr(strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])); err == nil {
			peer = a
		}
	}
	peer = peer.Unmap()
	if peer.Is6() {
		if net, err := peer.Prefix(64); err == nil {
			return net.String()
		}
	}
	return peer.String()
}

// sources limit each sender by itself.
type sources struct {
	mu sync.Mutex
	by map[string]*sender
}

// sender is how many requests one may send, and how many at once.
type sender struct {
	*rate.Limiter
	places chan struct{}
}

// allow returns who sends, unless it sends too many requests.
func (s *sources) allow(who string, now time.Time) (*sender, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[string]*sender{}
	}
	if s.by[who] == nil && len(s.by) >= maxSources {
		for other, l := range s.by {
			if l.TokensAt(now) >= burst && len(l.places) == 0 {
				delete(s.by, other)
			}
		}
		if len(s.by) >= maxSources {
			who = "others"
		}
	}
	if s.by[who] == nil {
		s.by[who] = &sender{rate.NewLimiter(perSecond, burst), make(chan struct{}, ofEach)}
	}
	return s.by[who], s.by[who].AllowN(now, 1)
}

// enter takes a place, waiting for it for some patience. leave gives it back.
func enter(places chan struct{}) (leave func(), ok bool) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, true
	case <-time.After(patience):
		return nil, false
	}
}

// looks limit how often each GitRepo is told of pushes.
type looks struct {
	mu sync.Mutex
	by map[client.ObjectKey]*look
}

// look is what one GitRepo may be told; next is what it will be told when it may.
type look struct {
	limit *rate.Limiter
	next  *push
}

// tell calls now, or later with the last push that came until then. Nothing is
// lost: who is told late sees what was pushed meanwhile.
func (l *looks) tell(key client.ObjectKey, p push, now func(push) error) error {
	l.mu.Lock()
	if l.by == nil {
		l.by = map[client.ObjectKey]*look{}
	}
	of := l.by[key]
	if of == nil {
		of = &look{limit: rate.NewLimiter(lookPerSecond, lookBurst)}
		l.by[key] = of
	}
	if of.next != nil {
		of.next = &p
		l.mu.Unlock()
		return nil
	}
	delay := of.limit.Reserve().Delay()
	if delay > 0 {
		of.next = &p
	}
	l.mu.Unlock()
	if delay == 0 {
		return now(p)
	}
	time.AfterFunc(delay, func() {
		l.mu.Lock()
		last := *of.next
		of.next = nil
		l.mu.Unlock()
		_ = now(last) // a poll comes anyway
	})
	return nil
}

// forget drops what is at rest.
func (l *looks) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, of := range l.by {
		if of.next == nil && of.limit.Tokens() >= lookBurst {
			delete(l.by, key)
		}
	}
}

// secrets are those that were read a moment ago.
type secrets struct {
	mu sync.Mutex
	by map[client.ObjectKey]kept
}

type kept struct {
	data  map[string][]byte
	err   error
	until time.Time
}

func (s *secrets) get(ctx context.Context, reader client.Reader, key client.ObjectKey, now time.Time) (map[string][]byte, error) {
	s.mu.Lock()
	k, ok := s.by[key]
	s.mu.Unlock()
	if ok && now.Before(k.until) {
		return k.data, k.err
	}
	secret := &corev1.Secret{}
	err := reader.Get(ctx, key, secret)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil || len(s.by) >= maxSources {
		s.by = map[client.ObjectKey]kept{}
	}
	s.by[key] = kept{secret.Data, err, now.Add(keepSecret)}
	return secret.Data, err
}
