//go:build !linux

package worker

import "syscall"

// childAttributes has nothing to add: a child ends when its stdin is closed.
func childAttributes() *syscall.SysProcAttr { return nil }

// residentBytes is not known here; the deadline remains.
func residentBytes(int) int64 { return 0 }
