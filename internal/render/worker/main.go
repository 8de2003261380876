package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/pprof"

	"github.com/flotilla-sh/flotilla/internal/cache"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/source"
)

const (
	// sourceRoom is how many bytes of files a child keeps for later orders.
	sourceRoom = 64 << 20
	// stackLimit ends a recursion without end before it ends the memory.
	stackLimit = 256 << 20
)

// Main is what a child process does: it renders what comes in on stdin until
// that is closed, and writes the results to stdout. A program calls it, before
// anything else, when its first argument is Command.
func Main(stdin io.Reader, stdout io.Writer) error {
	pipe := newFrames(stdin, stdout)
	var first hello
	if _, err := pipe.receive(&first); err != nil {
		return endOfInput(err)
	}
	if first.MemoryLimit > 0 {
		// Collect harder near the limit at which the parent kills.
		debug.SetMemoryLimit(first.MemoryLimit * 3 / 4)
	}
	if first.Profiles != "" {
		stop, err := profile(first.Profiles)
		if err != nil {
			return err
		}
		defer stop()
	}
	debug.SetMaxStack(stackLimit)
	http.DefaultTransport = offline{}
	log.SetOutput(io.Discard) // Helm writes there; stderr is for the reason of a crash
	c := &childLoop{pipe: pipe, renderer: render.New(), sources: cache.New[[]source.File](sourceRoom), outputLimit: first.OutputLimit, sender: newSender()}
	return endOfInput(c.serve())
}

// profile begins a CPU profile of this process in a directory.
func profile(dir string) (stop func(), err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("profile renders: %w", err)
	}
	file, err := os.Create(filepath.Join(dir, fmt.Sprintf("render-%d.pprof", os.Getpid())))
	if err != nil {
		return nil, fmt.Errorf("profile renders: %w", err)
	}
	return func() { pprof.StopCPUProfile(); _ = file.Close() }, pprof.StartCPUProfile(file)
}

// offline refuses every request. What is to be rendered is checked for URLs
// before a library sees it; this is for what a check would miss.
type offline struct{}

// RoundTrip implements http.RoundTripper.
func (offline) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("%s is not fetched: nothing is while a bundle is rendered", r.URL.Redacted())
}

// endOfInput takes the end of stdin for what it is: the parent has gone.
func endOfInput(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

type childLoop struct {
	pipe     *frames
	renderer render.Renderer
	sources  *cache.LRU[[]source.File]
	// outputLimit is how many bytes of objects may be sent.
	outputLimit int64
	cluster     render.Capabilities // of the last order
	sender      *sender
	collector   collector
}

type incoming struct {
	order order
	parts [][]byte
	err   error
}

// serve reads while it renders, so that the end of the parent is noticed even
// when a template never ends: the caller then ends the process.
func (c *childLoop) serve() error {
	orders := make(chan incoming)
	go func() {
		for {
			var in incoming
			in.parts, in.err = c.pipe.receive(&in.order)
			orders <- in
			if in.err != nil {
				return
			}
		}
	}()
	finished := make(chan error)
	busy := false
	for {
		select {
		case in := <-orders:
			if in.err != nil {
				return in.err
			}
			if busy {
				// The parent has the whole reply, and its next order may be
				// here before the write of that reply has returned.
				if err := <-finished; err != nil {
					return err
				}
			}
			busy = true
			go func() { finished <- c.fulfil(&in) }()
		case err := <-finished:
			busy = false
			if err != nil {
				return err
			}
		}
	}
}

// fulfil renders one order and writes the reply.
func (c *childLoop) fulfil(in *incoming) error {
	req := in.order.Request
	if in.order.SameCluster {
		req.Capabilities = c.cluster
	}
	c.cluster = req.Capabilities
	if !in.order.WithFiles {
		known, ok := c.sources.Get(req.SourceDigest)
		if !ok {
			return c.pipe.send(reply{NeedFiles: true}, nil)
		}
		req.Files = known
	} else {
		files, err := in.order.files(in.parts)
		if err != nil {
			return err
		}
		req.Files = files
		c.sources.Put(req.SourceDigest, files, sizeOf(files))
	}
	answer, parts := c.sender.reply(c.render(req))
	if err := c.pipe.send(answer, parts); err != nil {
		return err
	}
	c.collector.adapt()
	return nil
}

// render turns a panic into an error: one bad bundle must not cost the process
// what it remembers of the others.
func (c *childLoop) render(req render.Request) (result *render.Result, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("rendering bundle %s panicked: %v\n%s", req.Bundle, problem, debug.Stack())
		}
	}()
	result, err = c.renderer.Render(context.Background(), req)
	if err != nil {
		return nil, err
	}
	return result, c.checkSize(req.Bundle, result)
}

// checkSize refuses a result that the parent could not hold beside those of
// others.
func (c *childLoop) checkSize(bundle string, result *render.Result) error {
	total := int64(0)
	for i := range result.Objects {
		total += int64(len(result.Objects[i].JSON))
	}
	if c.outputLimit <= 0 || total <= c.outputLimit {
		return nil
	}
	return fault.Stall(ReasonOutput, fmt.Errorf("bundle %s renders to %d MiB of objects, and at most %d MiB are allowed: split the bundle", bundle, total>>20, c.outputLimit>>20))
}

func sizeOf(files []source.File) int {
	total := 0
	for _, file := range files {
		total += len(file.Path) + len(file.Data)
	}
	return total
}
