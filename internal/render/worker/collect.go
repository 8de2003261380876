package worker

import (
	"runtime/debug"
	"runtime/metrics"
)

const (
	// gcSpare is how much memory a child may fill before it looks for garbage,
	// however little is in use: a render of a small chart leaves megabytes.
	gcSpare = 24 << 20
	// gcPercent is the least that may be garbage, in percent of what is in use.
	gcPercent = 150
	// liveBytes is the metric of what the last collection has found in use.
	liveBytes = "/gc/heap/live:bytes"
)

// collector sets how early a child collects its garbage.
type collector struct{ percent int }

// adapt looks at what is in use. It changes nothing for a small difference: each
// change stops the program for a moment.
func (c *collector) adapt() {
	sample := []metrics.Sample{{Name: liveBytes}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return
	}
	percent := percentFor(sample[0].Value.Uint64())
	if percent > c.percent*5/4 || percent < c.percent*4/5 {
		c.percent = percent
		debug.SetGCPercent(percent)
	}
}

// percentFor is what leaves room for gcSpare beside what is in use.
func percentFor(live uint64) int {
	return max(gcPercent, int(gcSpare*100/max(live, 1<<20)))
}
