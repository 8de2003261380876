package soak_test

import (
	"testing"
	"time"
)

// TestHooksGetTheirTime takes a cluster out of its agent's reach for longer than
// hooks are given: what is done after that gets its time all the same.
func TestHooksGetTheirTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := worldInMemory(t, 3, 1, virtual)
		w.start()
		app("b1", traits{hooks: true})(w)
		for deadline := time.Now().Add(10 * time.Minute); len(w.watch.tellings("c1")) == 0 && time.Now().Before(deadline); {
			time.Sleep(time.Second)
		}
		if told := w.watch.tellings("c1"); len(told) != 1 || told[0] != "made b1-check" {
			t.Fatalf("not where it is to begin: %v\n%s", told, w.story())
		}
		w.agents[0].proxies[1].Cut(true)
		time.Sleep(20 * time.Minute)
		w.agents[0].proxies[1].Cut(false)
		w.converge()
		w.stop()
		time.Sleep(time.Hour)
		w.end()
	})
}
