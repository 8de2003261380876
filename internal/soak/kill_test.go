package soak_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/faultproxy"
	clusternames "github.com/flotilla-sh/flotilla/internal/names"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

var everyKill = flag.Bool("kills", false, "make every fault at every write, not one of them in turn")

// life is what a bundle goes through while something goes wrong.
type life struct {
	// before are the bundles that there are when it begins.
	before func(w *world)
	// then is the way that it goes.
	then func(w *world)
	// order is how things come to happen on the cluster: none of what is named
	// later happens first.
	order []string
}

// app makes a bundle with three objects.
func app(name string, has traits) func(w *world) {
	return func(w *world) {
		b := &bundle{name: name, rings: rings, objects: map[string]int{}, traits: has}
		for i := range 3 {
			b.objects[fmt.Sprintf("%s-o%d", name, i+1)] = w.model.next()
		}
		w.write(b)
	}
}

// upgrade drops an object of a bundle, changes one, keeps one and adds one.
func upgrade(name string) func(w *world) {
	return func(w *world) {
		b := w.model.bundles[name]
		delete(b.objects, name+"-o1")
		b.objects[name+"-o2"], b.objects[name+"-o4"] = w.model.next(), w.model.next()
		w.write(b)
	}
}

// rename gives all objects of a bundle to another one, and removes it.
func rename(w *world) {
	old := w.model.bundles["b1"]
	b := *old
	b.name, b.objects = "b2", maps.Clone(old.objects)
	w.write(&b)
	w.erase(old)
}

func remove(w *world) { w.erase(w.model.bundles["b1"]) }

// both does one thing after the other.
func both(all ...func(w *world)) func(w *world) {
	return func(w *world) {
		for _, do := range all {
			do(w)
		}
	}
}

// lives are the ways of bundles that somebody is killed on.
var lives = map[string]life{
	"install":   {then: app("b1", traits{})},
	"upgrade":   {before: app("b1", traits{}), then: upgrade("b1")},
	"hand-over": {before: app("b1", traits{}), then: rename},
	"removal":   {before: app("b1", traits{}), then: remove},
	"move": {
		before: both(app("b1", traits{}), app("b2", traits{})),
		then: func(w *world) {
			b1, b2 := w.model.bundles["b1"], w.model.bundles["b2"]
			delete(b1.objects, "b1-o1")
			b2.objects["b1-o1"] = w.model.next()
			w.write(b1)
			w.write(b2)
		},
	},
	"install with hooks and waves": {
		then:  app("b1", traits{hooks: true, waves: true}),
		order: []string{"succeeded b1-check", "made b1-migrate", "succeeded b1-migrate", "wrote b1-o1 1", "made b1-tell"},
	},
	"upgrade with hooks": {
		before: app("b1", traits{hooks: true}), then: upgrade("b1"),
		order: []string{"made b1-check", "succeeded b1-check", "made b1-migrate", "succeeded b1-migrate", "wrote b1-o2 4", "made b1-tell"},
	},
	"upgrade with waves": {before: app("b1", traits{waves: true}), then: upgrade("b1")},
	"upgrade whose hook fails": {
		before: app("b1", traits{hooks: true}),
		then: func(w *world) {
			b := w.model.bundles["b1"]
			b.failing = true
			w.renew(b)
			w.write(b)
			w.until(b, fleet.ErrApplied)
			b.failing = false
			w.write(b)
		},
	},
	"removal with hooks": {
		before: app("b1", traits{hooks: true}), then: remove,
		order: []string{"made b1-drain", "succeeded b1-drain", "deleted b1-o1", "made b1-clean", "succeeded b1-clean"},
	},
	"rename with hooks":  {before: app("b1", traits{hooks: true}), then: rename},
	"install of a chart": {then: app("b1", traits{chart: true})},
	"upgrade of a chart": {before: app("b1", traits{chart: true, hooks: true}), then: upgrade("b1")},
	"the record goes and comes back": {
		before: both(app("b1", traits{hooks: true}), app("b2", traits{chart: true})),
		then: func(w *world) {
			c := w.model.clusters[0]
			w.depart(c)
			if !w.comeBack(c, w.pace.converge) {
				w.fail("the record of %s does not go", c.name)
			}
		},
	},
	"a chart is given over": {before: app("b1", traits{chart: true}), then: rename},
}

// harms are what is done to a write: the program ends before or after it, or it
// is refused or its answer lost.
var harms = []faultproxy.Kind{faultproxy.KillBefore, faultproxy.KillAfter, faultproxy.Internal, faultproxy.Lose}

// TestHarmAtEachWrite lets each write of the hub and the agent go wrong in turn,
// on each way of a bundle through its life.
func TestHarmAtEachWrite(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	for name, l := range lives {
		for who := range 3 {
			for i, kind := range harms {
				t.Run(fmt.Sprintf("%s,%s,%s", name, []string{"hub", "agent to hub", "agent to itself"}[who], kind), func(t *testing.T) {
					t.Parallel()
					// Of the harms at one write most runs make one.
					first, step := 1+(i+len(name))%len(harms), len(harms)
					if *everyKill {
						first, step = 1, 1
					}
					met := true
					for n := first; met && !t.Failed(); n += step {
						bubble(t, func(t *testing.T) { met = l.harmed(t, name, who, kind, n) })
					}
				})
			}
		}
	}
}

// harmed goes one way, and tells whether it came to the nth write.
func (l life) harmed(t *testing.T, name string, who int, kind faultproxy.Kind, n int) bool {
	p := virtual
	p.quiet, p.look, p.work = 2*time.Minute, 5*time.Second, 4*time.Second
	w := worldInMemory(t, uint64(n), 1, p)
	w.trace("%s: %s at proxy %d, write %d", name, kind, who, n)
	met, arm := harmAt(w, who, kind, n)
	if l.before == nil {
		arm() // how a hub and an agent begin is part of the way
	}
	w.start()
	if l.before != nil {
		l.before(w)
		w.converge()
		w.watch.forgetTold()
		arm()
	}
	l.then(w)
	w.converge()
	w.quiet()
	w.stop()
	l.inOrder(w)
	time.Sleep(time.Hour) // lets everything that still runs end
	w.end()
	return met()
}

// harmAt returns what lets the nth write of a proxy go wrong from then on, and
// what tells whether it has.
func harmAt(w *world, who int, kind faultproxy.Kind, n int) (met func() bool, arm func()) {
	var was atomic.Bool
	decide := faultproxy.FaultAt(n, kind, restless)
	return was.Load, func() {
		w.proxies()[who].Use(func(q faultproxy.Request) faultproxy.Fault {
			f := decide(q)
			if f.Kind != faultproxy.None {
				was.Store(true)
			}
			return f
		})
	}
}

// inOrder compares the order in which things have happened, and that each has.
func (l life) inOrder(w *world) {
	told := w.watch.tellings("c1")
	last := -1
	for _, what := range l.order {
		first := slices.Index(told, what)
		switch {
		case first < 0:
			w.fail("this has not happened on the cluster: %s; but\n  %s", what, strings.Join(told, "\n  "))
		case first < last:
			w.fail("this has happened too early on the cluster: %s\n  %s", what, strings.Join(told, "\n  "))
		}
		last = max(last, first)
	}
}

// until waits for a state of a bundle's deployment on the first cluster.
func (w *world) until(b *bundle, want fleet.BundleState) {
	namespace := clusternames.ClusterNamespace(w.model.names.fleet, w.model.clusters[0].name)
	got := ""
	for deadline := time.Now().Add(w.pace.converge); time.Now().Before(deadline); time.Sleep(w.pace.look) {
		list := &fleet.BundleDeploymentList{}
		w.must(w.direct.hub.List(context.Background(), list, client.InNamespace(namespace), client.MatchingLabels{fleet.BundleLabel: b.name}))
		for _, bd := range list.Items {
			if got = bd.Status.Display.State; got == string(want) && bd.Status.ObservedGeneration == bd.Generation {
				return
			}
		}
	}
	w.fail("deployment of %s is %s, not %s", b.name, got, want)
}
