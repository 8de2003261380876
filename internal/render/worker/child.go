package worker

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render"
)

// Reasons of the errors of this package, for conditions and events.
const (
	// ReasonDeadline says that a render did not end.
	ReasonDeadline = "RenderDeadlineExceeded"
	// ReasonMemory says that a render used too much memory.
	ReasonMemory = "RenderMemoryExceeded"
	// ReasonOutput says that a render gave too much.
	ReasonOutput = "RenderOutputExceeded"
	// ReasonCrash says that a render brought its process down.
	ReasonCrash = "RenderCrashed"
)

// memoryInterval is how often the memory of a rendering child is looked at.
const memoryInterval = 25 * time.Millisecond

// crashed is the exit code of a Go program that the runtime ended.
const crashed = 2

// child is one process. One render uses it at a time.
type child struct {
	options *Options
	command *exec.Cmd
	pipe    *frames
	stdin   io.Closer
	stderr  *head
	objects *receiver
	sent    map[string]bool      // digests of sources that it was sent
	cluster *render.Capabilities // what it was told last
	renders int
	broken  bool
	rest    *time.Timer // ends it when it has nothing to do
}

// start starts a child.
func start(options *Options) (*child, error) {
	command := exec.Command(options.Executable, options.Args...)
	// Templates see nothing of the environment, and dates are the same on
	// every machine.
	command.Env = []string{"TZ=UTC", "GOTRACEBACK=single"}
	command.SysProcAttr = childAttributes()
	c := &child{options: options, command: command, stderr: &head{}, objects: newReceiver(), sent: map[string]bool{}}
	command.Stderr = c.stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("the render process %s cannot be started: %w", options.Executable, err)
	}
	c.stdin, c.pipe = stdin, newFrames(stdout, stdin)
	if err := c.pipe.send(hello{MemoryLimit: options.MemoryLimit, OutputLimit: options.OutputLimit, Profiles: options.Profiles}, nil); err != nil {
		c.end()
		return nil, fmt.Errorf("the render process %s does not listen: %w%s", options.Executable, err, c.stderr)
	}
	return c, nil
}

// profilePatience is how long a child may take to write its profile.
const profilePatience = 5 * time.Second

// end ends the process at once: it has nothing to lose but a profile.
func (c *child) end() {
	c.broken = true
	c.stdin.Close()
	if c.options.Profiles != "" {
		defer time.AfterFunc(profilePatience, func() { c.command.Process.Kill() }).Stop() //nolint:errcheck // it may have ended by itself
		c.command.Wait()                                                                  //nolint:errcheck // how it ended does not matter
		return
	}
	c.command.Process.Kill() //nolint:errcheck // it may have ended by itself
	c.command.Wait()         //nolint:errcheck // how it ended is known or does not matter
}

// exchanged is the outcome of an exchange with the process.
type exchanged struct {
	result *render.Result
	err    error // of the render
	broken error // of the pipe
}

// render gives an order and waits for the reply, the deadline, the memory
// limit or the end of ctx, whatever comes first.
func (c *child) render(ctx context.Context, req render.Request) (*render.Result, error) {
	c.renders++
	done := make(chan exchanged, 1)
	go func() { done <- c.exchange(req) }()
	stop := c.watch(ctx, req.Bundle, done)
	if stop.err != nil {
		c.end()
		return nil, stop.err
	}
	if stop.out.broken != nil {
		return nil, c.died(req.Bundle, stop.out.broken)
	}
	return stop.out.result, stop.out.err
}

// watched is how a watch ended: with the reply, or with the reason to kill.
type watched struct {
	out exchanged
	err error
}

func (c *child) watch(ctx context.Context, bundle string, done <-chan exchanged) watched {
	deadline := time.NewTimer(c.options.Deadline)
	defer deadline.Stop()
	memory := time.NewTicker(memoryInterval)
	defer memory.Stop()
	for {
		select {
		case out := <-done:
			return watched{out: out}
		case <-ctx.Done():
			return watched{err: ctx.Err()}
		case <-deadline.C:
			return watched{err: c.tooLong(bundle)}
		case <-memory.C:
			if used := residentBytes(c.command.Process.Pid); used > c.options.MemoryLimit {
				return watched{err: c.tooMuch(bundle)}
			}
		}
	}
}

func (c *child) tooLong(bundle string) error {
	return fault.Stall(ReasonDeadline, fmt.Errorf("rendering bundle %s did not end within %v and was stopped: a template probably never ends, look for an include that includes itself or a loop that grows what it walks over", bundle, c.options.Deadline))
}

func (c *child) tooMuch(bundle string) error {
	return fault.Stall(ReasonMemory, fmt.Errorf("rendering bundle %s took more than %d MiB of memory and was stopped: a template probably never ends, or its output is too large; split the bundle", bundle, c.options.MemoryLimit>>20))
}

// died explains the end of a process that nobody here has killed.
func (c *child) died(bundle string, cause error) error {
	c.stdin.Close()
	c.command.Process.Kill() //nolint:errcheck // in case that only its pipe has ended
	waitErr := c.command.Wait()
	c.broken = true
	if waitErr != nil {
		cause = waitErr
	}
	err := fmt.Errorf("the render process ended while it rendered bundle %s: %w%s", bundle, cause, c.stderr)
	if c.command.ProcessState != nil && c.command.ProcessState.ExitCode() == crashed {
		return fault.Stall(ReasonCrash, err)
	}
	return err
}

// exchange sends an order, with the files where the process may lack them, and
// reads the reply.
func (c *child) exchange(req render.Request) exchanged {
	withFiles := !c.sent[req.SourceDigest]
	for {
		o, parts := pack(req, withFiles)
		if c.cluster != nil && o.Request.Capabilities.Equal(*c.cluster) {
			o.SameCluster, o.Request.Capabilities = true, render.Capabilities{}
		}
		if err := c.pipe.send(o, parts); err != nil {
			return exchanged{broken: err}
		}
		c.cluster = &req.Capabilities
		var answer reply
		parts, err := c.pipe.receive(&answer)
		if err != nil {
			return exchanged{broken: err}
		}
		if answer.NeedFiles && !withFiles {
			withFiles = true
			continue
		}
		c.sent[req.SourceDigest] = true
		result, err := c.objects.result(&answer, parts)
		return exchanged{result: result, err: err}
	}
}

// head keeps the first of what a process writes to its stderr, where the Go
// runtime says why it gave up.
type head struct{ text []byte }

// Write implements io.Writer. Only the goroutine that copies stderr calls it.
func (h *head) Write(p []byte) (int, error) {
	const most = 400
	if room := most - len(h.text); room > 0 {
		h.text = append(h.text, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

// String returns the text for the end of a message. The process must have been
// waited for.
func (h *head) String() string {
	if text := strings.Join(strings.Fields(string(h.text)), " "); text != "" {
		return ": " + text
	}
	return ""
}
