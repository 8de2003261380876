package faultproxy

import (
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/flotilla-sh/flotilla/internal/apireq"
)

// Plan is the faults of one seed. Seeds differ in which faults there are and
// how many: few kinds of them in one run reach states that a mix of all hides.
type Plan struct {
	seed uint64
	// rate is how many of a thousand requests have a fault, by kind of request.
	writes, reads, watches int
	kinds                  []Kind
	// longest bounds how long a watch is held or silent.
	longest time.Duration
}

// all are the kinds of faults that a plan draws from.
var all = []Kind{Refuse, Lose, Tear, Conflict, TooMany, Internal, Gone, KillBefore, KillAfter, Stale, Hold, Silence, Close}

// NewPlan makes the plan of a seed, in which no watch is held or silent for
// longer than a time.
func NewPlan(seed uint64, longest time.Duration) Plan {
	r := rand.New(rand.NewPCG(seed, 0))
	p := Plan{
		seed: seed, longest: longest,
		writes: pick(r, 0, 20, 60, 150, 300), reads: pick(r, 0, 5, 20, 60), watches: pick(r, 0, 100, 400, 700),
	}
	for _, k := range all {
		if r.IntN(2) == 0 {
			p.kinds = append(p.kinds, k)
		}
	}
	return p
}

func pick(r *rand.Rand, from ...int) int { return from[r.IntN(len(from))] }

// String says what the plan does.
func (p Plan) String() string {
	kinds := make([]string, 0, len(p.kinds))
	for _, k := range p.kinds {
		kinds = append(kinds, string(k))
	}
	return "of a thousand writes " + strconv.Itoa(p.writes) + ", reads " + strconv.Itoa(p.reads) + ", watches " + strconv.Itoa(p.watches) +
		" meet one of: " + strings.Join(kinds, ", ")
}

// Decide says what happens to a request. It depends on the seed and the request
// alone, and not on what else is under way.
func (p Plan) Decide(q Request) Fault {
	h := fnv.New64a()
	for _, part := range []string{q.Client, q.Verb, q.Path(), strconv.Itoa(q.N)} {
		_, _ = h.Write([]byte(part + "\x00"))
	}
	r := rand.New(rand.NewPCG(p.seed, h.Sum64()))
	if r.IntN(1000) >= p.rate(q) {
		return Fault{}
	}
	var fitting []Kind
	for _, k := range p.kinds {
		if k.fits(q.Request) && !p.rare(k, r) {
			fitting = append(fitting, k)
		}
	}
	if len(fitting) == 0 {
		return Fault{}
	}
	f := Fault{Kind: fitting[r.IntN(len(fitting))], After: r.IntN(4)}
	switch f.Kind {
	case TooMany:
		f.For = time.Second
	case Hold:
		f.For = time.Duration(r.Int64N(int64(p.longest/10) + 1))
	case Silence:
		f.For = time.Duration(r.Int64N(int64(p.longest) + 1))
	}
	return f
}

// rare keeps most kills away: a client that is killed at every third write
// does nothing else than start.
func (p Plan) rare(k Kind, r *rand.Rand) bool {
	return (k == KillBefore || k == KillAfter) && r.IntN(4) > 0
}

func (p Plan) rate(q Request) int {
	switch {
	case q.Writes():
		return p.writes
	case q.Verb == apireq.Watch:
		return p.watches
	}
	return p.reads
}
