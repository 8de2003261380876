// Package backoff says how long to wait before what has failed is tried again.
package backoff

import "time"

// Backoff waits for Min after the first failure and twice as long after each
// further one in a row, up to Max. To that comes up to Jitter times as much, at
// random: those that failed together must not come back together.
type Backoff struct {
	Min, Max time.Duration
	Jitter   float64
}

// After returns how long to wait after so many failures in a row. random draws
// from [0, 1).
func (b Backoff) After(failures int, random func() float64) time.Duration {
	d := b.Min
	for i := 1; i < failures && d < b.Max; i++ {
		if d > b.Max/2 {
			d = b.Max
			break
		}
		d *= 2
	}
	return Spread(d, b.Jitter, random)
}

// Spread makes d longer, by up to jitter times as much at random.
func Spread(d time.Duration, jitter float64, random func() float64) time.Duration {
	return d + time.Duration(random()*jitter*float64(d))
}
