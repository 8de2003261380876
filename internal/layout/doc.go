// Package layout guards the direction of imports. Its test runs "go list" and
// fails on every edge that the architecture does not allow; see rules there.
package layout
