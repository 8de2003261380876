// Package worker renders in child processes. A template that never ends cannot
// be interrupted, and one that grows without end takes the process with it;
// only a process can be killed. Children are the same program, live long, and
// remember charts and files between renders.
//
// Memory is limited by watching the child's resident set while it renders, and
// by telling its garbage collector to work harder on the way there. RLIMIT_AS
// counts address space that Go reserves and never uses, and RLIMIT_DATA ends a
// child without telling why.
package worker

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/flotilla-sh/flotilla/internal/render"
)

// Command is the hidden first argument that makes a program a child.
const Command = "render-worker"

// Options are those of a Pool.
type Options struct {
	// Executable is the program to start, usually the running one.
	Executable string
	// Args are its arguments; Command where empty.
	Args []string
	// Size is how many children may run; one for each CPU where 0.
	Size int
	// MemoryLimit is how many bytes a child may use; 1 GiB where 0.
	MemoryLimit int64
	// OutputLimit is how many bytes of objects a render may give, which whoever
	// asked for it has to hold; 64 MiB where 0.
	OutputLimit int64
	// Deadline is how long a render may take; a minute where 0.
	Deadline time.Duration
	// MaxRenders is after how many renders a child is replaced; 1000 where 0.
	MaxRenders int
	// Idle is how long a child may have nothing to do before it is ended and
	// its memory is free; 0 keeps it.
	Idle time.Duration
	// Profiles is a directory where each child writes a CPU profile of its
	// whole life; none where empty.
	Profiles string
}

func (o *Options) setDefaults() {
	if len(o.Args) == 0 {
		o.Args = []string{Command}
	}
	if o.Size <= 0 {
		o.Size = runtime.NumCPU()
	}
	if o.MemoryLimit <= 0 {
		o.MemoryLimit = 1 << 30
	}
	if o.OutputLimit <= 0 {
		o.OutputLimit = 64 << 20
	}
	if o.Deadline <= 0 {
		o.Deadline = time.Minute
	}
	if o.MaxRenders <= 0 {
		o.MaxRenders = 1000
	}
}

// Pool is a render.Renderer that renders in child processes. They are started
// when they are needed.
type Pool struct {
	options Options
	slots   chan struct{}

	mu     sync.Mutex
	idle   []*child
	closed bool
}

// errClosed says that a pool is used after its end.
var errClosed = errors.New("the render pool is closed")

// NewPool returns a Pool; Close ends its children.
func NewPool(options Options) *Pool {
	options.setDefaults()
	return &Pool{options: options, slots: make(chan struct{}, options.Size)}
}

// Render implements render.Renderer. When ctx ends the child is killed.
func (p *Pool) Render(ctx context.Context, req render.Request) (*render.Result, error) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	req.SourceDigest = render.SourceDigest(&req)
	c, err := p.take(req.SourceDigest)
	if err != nil {
		return nil, err
	}
	result, err := c.render(ctx, req)
	p.giveBack(c)
	return result, err
}

// take returns an idle child, if possible one that has the files, or a new one.
func (p *Pool) take(sourceDigest string) (*child, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	if len(p.idle) == 0 {
		return start(&p.options)
	}
	best := len(p.idle) - 1
	for i, c := range p.idle {
		if c.sent[sourceDigest] {
			best = i
		}
	}
	c := p.idle[best]
	p.idle = append(p.idle[:best], p.idle[best+1:]...)
	if c.rest != nil {
		c.rest.Stop()
	}
	return c, nil
}

// giveBack keeps a child for the next render if it is still good.
func (p *Pool) giveBack(c *child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || c.broken || c.renders >= p.options.MaxRenders {
		c.end()
		return
	}
	p.idle = append(p.idle, c)
	if p.options.Idle > 0 {
		c.rest = time.AfterFunc(p.options.Idle, func() { p.retire(c) })
	}
}

// retire ends a child that is still idle.
func (p *Pool) retire(c *child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.idle, c); i >= 0 && !p.closed {
		p.idle = slices.Delete(p.idle, i, i+1)
		c.end()
	}
}

// Close ends the children; those that render are ended when they are done.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		c.end()
	}
	p.idle = nil
}
