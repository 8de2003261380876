// Package lab runs a hub, spokes and a Git server on one machine: every
// cluster is a real Kubernetes control plane of local processes, without
// containers, root or a network. Demo, tests and benchmarks stand on it.
//
// One process, the supervisor, is the parent of all others, and the kernel
// kills these when it ends in whatever way. It is either the program that
// calls Start (a test) or the background process that Up leaves behind;
// others reach it through a socket in the lab's directory. All that a lab
// writes is below that directory, which goes when the lab ends.
package lab
