package registry_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-sh/flotilla/internal/content/registry"
)

// A registry that never ends its answer holds up nobody who only waits in line.
func TestWhoWaitsInLineGivesUp(t *testing.T) {
	asked, end := make(chan struct{}), make(chan struct{})
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		once.Do(func() { close(asked) })
		<-end
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(end) })
	access, _, err := registry.Accesses(map[string][]byte{"reference": []byte(strings.TrimPrefix(server.URL, "http://") + "/fleet"), "basicHTTP": []byte("true")})
	if err != nil {
		t.Fatal(err)
	}
	r, err := registry.Open(access, clocktesting.NewFakePassiveClock(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	first, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := r.Has(first, "a")
		done <- err
	}()
	<-asked
	impatient, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := r.Has(impatient, "b"); err == nil {
		t.Error("who waits in line must give up with its context")
	}
	if err := r.Sweep(impatient, nil, time.Now(), time.Hour); err == nil {
		t.Error("a sweep must give up with its context")
	}
	stop()
	if err := <-done; err == nil {
		t.Error("a registry that does not answer has nothing")
	}
}
