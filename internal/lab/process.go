package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// gracePeriod is how long a process that is asked to end may take.
const gracePeriod = 3 * time.Second

// program is how to run one process. Its name is also that of its log.
type program struct {
	name string
	path string
	args []string
	dir  string
	// pod has the program find no place for temporary files, as in the pods that
	// the charts make.
	pod bool
	// ready waits until the process serves; nil where nothing waits for it.
	ready func(context.Context) error
}

// launcher starts processes from one thread that lives as long as the lab:
// the kernel kills a child with its parent's thread, not only with the parent.
type launcher struct{ jobs chan func() }

func newLauncher() *launcher {
	l := &launcher{jobs: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for job := range l.jobs {
			job()
		}
	}()
	return l
}

func (l *launcher) start(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	l.jobs <- func() { result <- cmd.Start() }
	return <-result
}

// close ends the thread, and with it every process that is left.
func (l *launcher) close() { close(l.jobs) }

// process is a program that runs, or did.
type process struct {
	program program
	log     string
	pid     int
	started uint64
	// done is closed when the process has ended; err says how.
	done chan struct{}
	err  error
}

// run starts a program with home as its home and for its temporary files, so
// that it neither reads the user's configuration nor leaves anything behind.
func (l *launcher) run(p program, logs, home string) (*process, error) {
	path := filepath.Join(logs, p.name+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(p.path, p.args...) //nolint:noctx // it outlives the call; stop ends it
	cmd.Dir = p.dir
	cmd.Env = append(cmd.Environ(), "HOME="+home, "TMPDIR="+p.temporary(home), "KUBECONFIG=")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttributes()
	if err := l.start(cmd); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", p.name, err)
	}
	running := &process{program: p, log: path, pid: cmd.Process.Pid, started: startTime(cmd.Process.Pid), done: make(chan struct{})}
	go func() {
		running.err = cmd.Wait()
		close(running.done)
	}()
	return running, nil
}

// temporary is where the program may have temporary files.
func (p program) temporary(home string) string {
	if p.pod {
		return os.DevNull
	}
	return home
}

// waitReady returns when the program serves, or an error with the end of its
// log as soon as it ends instead.
func (p *process) waitReady(ctx context.Context) error {
	if p.program.ready == nil {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-p.done:
			cancel(p.ended())
		case <-stop:
		}
	}()
	if err := p.program.ready(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return fmt.Errorf("%s did not become ready: %w; its log ends with:\n%s", p.program.name, err, tail(p.log))
	}
	return nil
}

func (p *process) ended() error {
	return fmt.Errorf("%s ended by itself: %s; its log ends with:\n%s", p.program.name, outcome(p.err), tail(p.log))
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// stop asks the process to end, and kills it with all of its group when it
// takes too long.
func (p *process) stop() {
	if p.running() {
		_ = signalGroup(p.pid, syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(gracePeriod):
		}
	}
	p.kill()
}

// kill ends the process and what it has started, and waits for it.
func (p *process) kill() {
	_ = signalGroup(p.pid, syscall.SIGKILL)
	<-p.done
}

// stopAll stops processes one after another, the last one first.
func stopAll(processes []*process) {
	for i := len(processes) - 1; i >= 0; i-- {
		processes[i].stop()
	}
}

// killAll kills processes at once.
func killAll(processes []*process) {
	var wait sync.WaitGroup
	for _, p := range processes {
		wait.Go(p.kill)
	}
	wait.Wait()
}

func outcome(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// tail returns the last lines of a log, for an error message.
func tail(path string) string {
	const lines, limit = 12, 400
	data, err := os.ReadFile(path)
	if err != nil {
		return "  (" + err.Error() + ")"
	}
	all := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	for i, line := range all {
		if len(line) > limit {
			line = line[:limit] + "…"
		}
		all[i] = "  " + line
	}
	return strings.Join(all, "\n")
}

// poll calls try until it succeeds, and gives its last error when ctx ends or
// limit is over.
func poll(ctx context.Context, limit time.Duration, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	last := errors.New("nothing happened")
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("not within %s: %w", limit, last)
			}
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}
