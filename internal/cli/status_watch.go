package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"reflect"
	"sync"
	"time"

	"github.com/spf13/cobra"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/cli/overview"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// settle is how long changes are gathered before they are shown: many come
// together.
const settle = 200 * time.Millisecond

// clearScreen moves to the upper left corner and clears what is below.
const clearScreen = "\x1b[H\x1b[2J\x1b[3J"

// follow shows the report with every change, until the context ends.
func (f *statusFlags) follow(cmd *cobra.Command) error {
	hub, err := f.client()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	first, cancel := context.WithTimeout(ctx, hubTimeout)
	defer cancel()
	// Whoever has a wrong name or hub is told at once.
	if _, err := f.report(first, hub); err != nil {
		return err
	}
	w := &follower{statusFlags: f, out: cmd.OutOrStdout(), changed: make(chan struct{}, 1)}
	if err := w.start(ctx); err != nil {
		return err
	}
	return w.loop(ctx)
}

// follower shows changes.
type follower struct {
	*statusFlags
	out     io.Writer
	cache   cache.Cache
	changed chan struct{}
	last    *overview.Report
	lastErr string

	mu sync.Mutex
	// trouble is why the hub could not be watched, and since when.
	trouble string
}

func (w *follower) start(ctx context.Context) error {
	config, err := w.config()
	if err != nil {
		return err
	}
	scheme, err := hubScheme()
	if err != nil {
		return err
	}
	w.cache, err = cache.New(config, cache.Options{Scheme: scheme, DefaultWatchErrorHandler: w.watchFailed})
	if err != nil {
		return explainHub(err)
	}
	go func() { _ = w.cache.Start(ctx) }() // it ends with ctx, without an error
	for _, obj := range []client.Object{&fleet.GitRepo{}, &fleet.Bundle{}, &fleet.Cluster{}, &fleet.BundleDeployment{}} {
		informer, err := w.cache.GetInformer(ctx, obj)
		if err != nil {
			return explainHub(err)
		}
		if _, err := informer.AddEventHandler(w.handler()); err != nil {
			return explainHub(err)
		}
	}
	return nil
}

func (w *follower) handler() toolscache.ResourceEventHandler {
	good := func() {
		w.setTrouble("")
		w.wake()
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { good() },
		UpdateFunc: func(any, any) { good() },
		DeleteFunc: func(any) { good() },
	}
}

// watchFailed notes that what is shown may be old.
func (w *follower) watchFailed(_ context.Context, _ *toolscache.Reflector, err error) {
	if err == io.EOF {
		return // the hub ends every watch after a while
	}
	w.setTrouble("the hub does not answer, this may be old: " + err.Error())
	w.wake()
}

func (w *follower) setTrouble(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trouble = text
}

func (w *follower) wake() {
	select {
	case w.changed <- struct{}{}:
	default: // it is awake
	}
}

func (w *follower) loop(ctx context.Context) error {
	w.wake()
	for {
		select {
		case <-ctx.Done():
			return nil // Ctrl-C is how this ends
		case <-w.changed:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(settle):
		}
		if err := w.show(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// show writes the report if it is not the one that was shown last.
func (w *follower) show(ctx context.Context) error {
	report, err := w.report(ctx, w.cache)
	if err != nil {
		return err
	}
	w.mu.Lock()
	trouble := w.trouble
	w.mu.Unlock()
	if reflect.DeepEqual(report, w.last) && trouble == w.lastErr {
		return nil
	}
	if w.Colour {
		err = w.redraw(report, trouble)
	} else {
		err = w.writeLines(report, trouble)
	}
	w.last, w.lastErr = report, trouble
	return err
}

// redraw writes the whole picture at once, so that it does not flicker.
func (w *follower) redraw(report *overview.Report, trouble string) error {
	var picture bytes.Buffer
	picture.WriteString(clearScreen)
	if err := report.Write(&picture, w.paintState); err != nil {
		return err
	}
	fmt.Fprintf(&picture, "\n%s  Ctrl-C ends\n", time.Now().Format(time.TimeOnly))
	if trouble != "" {
		fmt.Fprintln(&picture, w.paint(red, trouble))
	}
	_, err := w.out.Write(picture.Bytes())
	return err
}

func (w *follower) writeLines(report *overview.Report, trouble string) error {
	if w.last == nil {
		return report.Write(w.out, w.paintState)
	}
	lines := overview.Changes(w.last, report)
	if trouble != "" && trouble != w.lastErr {
		lines = append(lines, trouble)
	}
	now := time.Now().Format(time.TimeOnly)
	for _, line := range lines {
		if _, err := fmt.Fprintln(w.out, now, line); err != nil {
			return err
		}
	}
	return nil
}
