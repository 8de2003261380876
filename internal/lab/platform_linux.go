package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// supported says whether labs can run here.
func supported() error { return nil }

// childAttributes put a process into a group of its own, so that all of it
// can be stopped, and have the kernel kill it when its parent ends.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// backgroundAttributes make a process outlive its parent and its terminal.
func backgroundAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true}
}

func signalGroup(pid int, signal syscall.Signal) error {
	err := syscall.Kill(-pid, signal)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// startTime identifies a process together with its id, which the kernel uses
// again: the time of its start in clock ticks since boot. It is zero for a
// process that is gone or that nobody has waited for yet.
func startTime(pid int) uint64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The program's name, in parentheses, may hold anything.
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	const state, start = 0, 19
	if len(fields) <= start || fields[state] == "Z" || fields[state] == "X" {
		return 0
	}
	ticks, _ := strconv.ParseUint(fields[start], 10, 64)
	return ticks
}

// residentBytes is the memory that a process has to itself.
func residentBytes(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10
		}
	}
	return 0
}

// reserve takes a name among all labs of this machine for as long as this
// process lives or the result is not closed: an abstract socket, of which
// the kernel lets exist one of each name.
func reserve(name string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), "unix", "@flotilla-lab/"+name)
}

// inDir calls f with a path to a directory that is short enough for the
// address of a socket, which may have 107 bytes.
func inDir(dir string, f func(short string) error) error {
	open, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = open.Close() }()
	return f(fmt.Sprintf("/proc/self/fd/%d", open.Fd()))
}

// exited returns a channel that is closed when a process, which need not be a
// child, ends.
func exited(ctx context.Context, pid int) (<-chan struct{}, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("process %d, with which the lab is to end: %w", pid, err)
	}
	done := make(chan struct{})
	go func() {
		defer func() { _ = unix.Close(fd) }()
		for ctx.Err() == nil {
			poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}} //nolint:gosec // file descriptors are small
			if n, _ := unix.Poll(poll, int(time.Second.Milliseconds())); n > 0 {
				close(done)
				return
			}
		}
	}()
	return done, nil
}

// closeOnExec keeps an inherited file from children.
func closeOnExec(file *os.File) { unix.CloseOnExec(int(file.Fd())) }
