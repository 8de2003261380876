// Package soak runs a whole fleet, the hub's controllers and the agents of some
// clusters, through scripts of what people do and faults of what lies between,
// both chosen by a seed. When the faults have ended, every cluster must reach
// exactly what is wanted, every status must be true, and then nothing is
// written any more. See docs/testing.md.
package soak
