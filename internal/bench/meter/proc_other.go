//go:build !linux

package meter

import (
	"errors"
	"time"
)

var errLinux = errors.New("measuring works on Linux only: it reads /proc")

// Memory is what a process holds, in bytes.
type Memory struct {
	// Resident is all that is in RAM, Anonymous the part that is not backed by
	// a file.
	Resident, Anonymous int64
	// Peak is the highest Resident since it was reset.
	Peak int64
}

// MemoryOf reads the memory of a process, without its children.
func MemoryOf(int) (Memory, error) { return Memory{}, errLinux }

func cpu(map[string]int) (map[string]time.Duration, error) { return nil, errLinux }
func resetPeak(int) error                                  { return errLinux }

// Children returns the processes that a process has started itself.
func Children(int) []int { return nil }

// CPUOf is the time that this process has used.
func CPUOf(int) (time.Duration, error) { return 0, errLinux }
