// Package faultproxy is what tests put between a client and its API server: it
// counts what passes, and plays the enemies that a client meets in the field.
// It refuses requests, loses the answer to a request that was done, kills the
// client before or after a write, answers 409, 410, 429 and 500, tears answers
// in two, serves lists from a cache that is behind, and holds, loses, closes
// and expires watches.
//
// What happens to a request is decided by a function of it and its number
// alone, so a seed gives the same faults again.
package faultproxy
