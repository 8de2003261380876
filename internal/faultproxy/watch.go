package faultproxy

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// watch wraps the stream of a watch.
func (t trip) watch(r *http.Request, f Fault, stream io.ReadCloser) io.ReadCloser {
	ctx, end := context.WithCancelCause(r.Context())
	w := &watchBody{session: t.session, stream: stream, fault: f, ctx: ctx, end: end}
	// Whatever ends the client or the line ends the stream too.
	w.stop = context.AfterFunc(t.ctx, func() { w.breakOff(errKilled) })
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watches == nil {
		t.watches = map[*watchBody]bool{}
	}
	t.watches[w] = true
	return w
}

// watchBody is the stream of one watch.
type watchBody struct {
	*session
	stream io.ReadCloser
	fault  Fault
	reads  int
	ctx    context.Context
	end    context.CancelCauseFunc
	stop   func() bool
	once   sync.Once
}

// Read passes events on until it is time for the fault.
func (w *watchBody) Read(p []byte) (int, error) {
	if w.reads++; w.reads > w.fault.After {
		switch w.fault.Kind {
		case Close:
			return 0, io.EOF
		case Silence:
			if err := w.sleep(); err != nil {
				return 0, err
			}
			return 0, io.EOF
		case Hold:
			w.fault.Kind = None
			if err := w.sleep(); err != nil {
				return 0, err
			}
		}
	}
	n, err := w.stream.Read(p)
	if cause := context.Cause(w.ctx); cause != nil {
		return 0, cause
	}
	return n, err
}

func (w *watchBody) sleep() error {
	timer := time.NewTimer(w.fault.For)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-w.ctx.Done():
		return context.Cause(w.ctx)
	}
}

// breakOff ends the stream with an error.
func (w *watchBody) breakOff(err error) {
	w.end(err)
	w.once.Do(func() { _ = w.stream.Close() })
}

// Close ends the stream.
func (w *watchBody) Close() error {
	w.stop()
	w.breakOff(io.ErrClosedPipe)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.watches, w)
	return nil
}
