package soak_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/flotilla-sh/flotilla/internal/apireq"
	"github.com/flotilla-sh/flotilla/internal/faultproxy"
)

// lives are what a bundle goes through while somebody is killed.
var lives = map[string]func(w *world){
	"install": func(*world) {},
	"upgrade": func(w *world) {
		b := w.model.bundles["b1"]
		delete(b.objects, "o1")
		b.objects["o2"], b.objects["o4"] = w.model.next(), w.model.next()
		w.write(b)
	},
	"hand-over": func(w *world) {
		old := w.model.bundles["b1"]
		b := *old
		b.name = "b2"
		w.write(&b)
		w.erase(old)
	},
	"removal": func(w *world) { w.erase(w.model.bundles["b1"]) },
}

// TestKilledAtEachWrite kills the hub and the agent before and after each of
// their writes in turn, on each way of a bundle through its life.
func TestKilledAtEachWrite(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	for name, live := range lives {
		for who := range 3 {
			for _, kind := range []faultproxy.Kind{faultproxy.KillBefore, faultproxy.KillAfter} {
				t.Run(fmt.Sprintf("%s,%s,%s", name, []string{"hub", "agent to hub", "agent to itself"}[who], kind), func(t *testing.T) {
					t.Parallel()
					killed := true
					for n := 1; killed && !t.Failed(); n++ {
						bubble(t, func(t *testing.T) { killed = killedAt(t, name, live, who, kind, n) })
					}
				})
			}
		}
	}
}

// killedAt goes one way, and tells whether it came to the nth write.
func killedAt(t *testing.T, name string, live func(*world), who int, kind faultproxy.Kind, n int) bool {
	p := virtual
	p.quiet, p.look = 2*time.Minute, 5*time.Second
	w := worldInMemory(t, uint64(n), 1, p)
	w.trace("killed: %s, proxy %d, %s write %d", name, who, kind, n)
	b := &bundle{name: "b1", rings: rings, objects: map[string]int{"o1": w.model.next(), "o2": w.model.next(), "o3": w.model.next()}}
	killed := false
	decide := faultproxy.KillAt(n, kind, func(r apireq.Request) bool { return restless(r) })
	arm := func() {
		w.proxies()[who].Use(func(q faultproxy.Request) faultproxy.Fault {
			f := decide(q)
			killed = killed || f.Kind != faultproxy.None
			return f
		})
	}
	if name == "install" {
		arm()
	}
	w.start()
	w.write(b)
	w.converge()
	if name != "install" {
		arm()
		live(w)
		w.converge()
	}
	w.quiet()
	w.stop()
	time.Sleep(time.Hour) // lets everything that still runs end
	w.end()
	return killed
}
