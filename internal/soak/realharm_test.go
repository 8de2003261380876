package soak_test

import (
	"context"
	"flag"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/faultproxy"
	"github.com/flotilla-sh/flotilla/internal/lab"
)

var realHarms = flag.Int("real-harms", 2, "number of harms to writes of the hub on real API servers; a few hundred are all")

// realLives are the lives in which the hub is harmed on real API servers, in
// this order.
var realLives = []string{"hand-over", "removal", "install", "upgrade"}

// manyWrites is more than the hub makes in any of them.
const manyWrites = 24

// TestRealHarms lets writes of the hub go wrong in turn, on real API servers.
// Each of a few harms meets another life, in another way and at another write.
func TestRealHarms(t *testing.T) {
	s := realServers(t, *realHarms, lab.Spoke{Name: "one"})
	ended := map[string]int{}
	for i := range *realHarms {
		life, round := i%len(realLives), i/len(realLives)
		name, n := realLives[life], 1+(life+round)%manyWrites
		kind := harms[(life+(life+round)/manyWrites)%len(harms)]
		if last := ended[name]; last > 0 && n >= last {
			continue
		}
		t.Run(fmt.Sprintf("%s,%s %d", name, kind, n), func(t *testing.T) {
			w := newWorld(t, uint64(i), fmt.Sprintf("h%d", i), s, actualQuick)
			if !lives[name].harmedForReal(w, kind, n) {
				ended[name] = n
			}
		})
	}
}

// actualQuick is the pace of harms on real API servers.
var actualQuick = func() pace {
	p := actual
	p.look, p.quiet = p.look/5, p.quiet/4
	return p
}()

// harmedForReal goes one way, and tells whether the hub came to its nth write.
func (l life) harmedForReal(w *world, kind faultproxy.Kind, n int) bool {
	met, arm := harmAt(w, 0, kind, n)
	if l.before == nil {
		arm()
	}
	w.start()
	if l.before != nil {
		l.before(w)
		w.converge()
		arm()
	}
	before := w.uids()
	l.then(w)
	w.converge()
	w.quiet()
	w.stop()
	for name, uid := range w.uids() {
		if was := before[name]; was != "" && was != uid {
			w.fail("%s was wanted all the time, and was made anew", name)
		}
	}
	w.end()
	w.leave()
	return met()
}

// uids are the identities of the objects of the first cluster.
func (w *world) uids() map[string]types.UID {
	list := &corev1.ConfigMapList{}
	w.must(w.direct.spokes[0].List(context.Background(), list, client.InNamespace(w.model.names.shop)))
	out := map[string]types.UID{}
	for i := range list.Items {
		out[list.Items[i].Name] = list.Items[i].UID
	}
	return out
}
