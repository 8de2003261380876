package meter

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU times in /proc, the same on every Linux.
const tick = 10 * time.Millisecond

// task is what /proc/PID/stat tells of a process.
type task struct {
	parent int
	cpu    time.Duration
}

// tasks reads all processes.
func tasks() (map[int]task, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	out := make(map[int]task, len(files))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, err
		}
		out[pid] = parseStat(string(data))
	}
	return out, nil
}

// parseStat reads the parent, and the time of the process and of those of its
// children that it has waited for.
func parseStat(stat string) task {
	// The program's name, in parentheses, may hold anything.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const parent, first, last = 1, 11, 14
	if len(fields) <= last {
		return task{}
	}
	var t task
	t.parent, _ = strconv.Atoi(fields[parent])
	for _, field := range fields[first : last+1] {
		ticks, _ := strconv.ParseInt(field, 10, 64)
		t.cpu += time.Duration(ticks) * tick
	}
	return t
}

// tree returns a process and all that it has started, directly or not.
func tree(all map[int]task, root int) []int {
	children := map[int][]int{}
	for pid, t := range all {
		children[t.parent] = append(children[t.parent], pid)
	}
	out := []int{root}
	for i := 0; i < len(out); i++ {
		out = append(out, children[out[i]]...)
	}
	return out
}

// cpu is the time that each process has used, with those that it has started;
// of this process, which has started all of them, it is its own.
func cpu(roots map[string]int) (map[string]time.Duration, error) {
	all, err := tasks()
	if err != nil {
		return nil, err
	}
	out := make(map[string]time.Duration, len(roots))
	for name, root := range roots {
		if _, ok := all[root]; !ok {
			return nil, fmt.Errorf("%s (process %d) has ended", name, root)
		}
		family := []int{root}
		if root != os.Getpid() {
			family = tree(all, root)
		}
		for _, pid := range family {
			out[name] += all[pid].cpu
		}
	}
	return out, nil
}

// Memory is what a process holds, in bytes.
type Memory struct {
	// Resident is all that is in RAM, Anonymous the part that is not backed by
	// a file.
	Resident, Anonymous int64
	// Peak is the highest Resident since it was reset.
	Peak int64
}

// MemoryOf reads the memory of a process, without its children.
func MemoryOf(pid int) (Memory, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, err
	}
	var m Memory
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			m.Resident = kib << 10
		case "RssAnon":
			m.Anonymous = kib << 10
		case "VmHWM":
			m.Peak = kib << 10
		}
	}
	return m, nil
}

// resetPeak makes a process's peak start again from what it holds now.
func resetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// CPUOf is the time that this process has used.
func CPUOf(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return parseStat(string(data)).cpu, err
}

// Children returns the processes that a process has started itself.
func Children(pid int) []int {
	var out []int
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is good
	for _, file := range files {
		data, _ := os.ReadFile(file) // none where the thread has ended
		for _, field := range strings.Fields(string(data)) {
			if child, err := strconv.Atoi(field); err == nil {
				out = append(out, child)
			}
		}
	}
	return out
}
