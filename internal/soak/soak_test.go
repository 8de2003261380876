package soak_test

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-sh/flotilla/internal/memapi"
)

var (
	seeds  = flag.Int("seeds", 500, "number of seeds to run in virtual time")
	replay = flag.Int("seed", -1, "run this seed alone, and tell its story")
)

func TestMain(m *testing.M) {
	flag.Parse()
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	// The one that is there waits by a clock that all worlds share.
	utilruntime.ErrorHandlers = nil
	// Worlds live a second and leave much behind.
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// logger writes what a program logs into the story, where one is told.
func logger(w *world, name string) logr.Logger {
	if *replay < 0 {
		return logr.Discard()
	}
	return funcr.New(func(_, args string) { w.trace("%s: %s", name, args) }, funcr.Options{Verbosity: 1})
}

// virtual is the pace of virtual time.
var virtual = pace{
	step: 5 * time.Minute, fault: 3 * time.Minute, converge: 3 * time.Hour, look: 20 * time.Second,
	quiet: 8 * time.Minute, poll: 30 * time.Second, restart: 3 * time.Second, settle: 10 * time.Second, work: 40 * time.Second,
}

func TestSeeds(t *testing.T) {
	first, last := 0, *seeds
	if *replay >= 0 {
		first, last = *replay, *replay+1
	}
	for n := first; n < last; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) { inMemory(t, uint64(n)) })
		})
	}
}

// bubble runs f in virtual time. A watch of client-go that is stopped with an
// event on its way leaves a goroutine behind, which the bubble takes amiss.
func bubble(t *testing.T, f func(t *testing.T)) {
	defer func() {
		if r := recover(); r != nil && !strings.HasPrefix(fmt.Sprint(r), "deadlock: main bubble goroutine has exited") {
			panic(r)
		}
	}()
	synctest.Test(t, f)
}

// inMemory runs one seed in virtual time.
func inMemory(t *testing.T, seed uint64) {
	w := worldInMemory(t, seed, 2+int(seed%2), virtual)
	w.start()
	w.play()
	w.stop()
	time.Sleep(time.Hour) // lets everything that still runs end
	w.end()
}

// mostRequests is how many requests no program of any world comes near. One that
// runs in a circle in which no time passes is ended by nobody else.
const mostRequests = 200_000

// worldInMemory makes a world with some clusters on API servers in memory, and
// somebody who watches every write.
func worldInMemory(t *testing.T, seed uint64, clusters int, p pace) *world {
	var w *world
	watch := newMonitor(namesOf("s"), func(format string, args ...any) { w.broken(format, args...) })
	all := []*memapi.Server{memapi.NewHub(watch.hub)}
	s := servers{hub: all[0].Config()}
	for i := range clusters {
		all = append(all, memapi.New(watch.spoke(fmt.Sprintf("c%d", i+1))))
		s.spokes = append(s.spokes, all[i+1].Config())
	}
	w = newWorld(t, seed, "s", s, p)
	w.watch, w.memory = watch, all
	for _, proxy := range w.proxies() {
		proxy.Bound(mostRequests, func() {
			fmt.Printf("seed %d: %s runs away: it has made %d requests\n%s\n", seed, proxy.Name(), mostRequests, w.last(40))
			os.Exit(1)
		})
	}
	t.Cleanup(func() {
		// What was left behind in a bubble holds on to the servers.
		for _, server := range all {
			server.Forget()
		}
		for _, proxy := range w.proxies() {
			proxy.Reset()
		}
	})
	return w
}
