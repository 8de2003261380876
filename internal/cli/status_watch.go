package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"reflect"
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

// askEvery is how often the hub is asked whether it is there: a watch goes
// silent without a word when the hub goes away.
const askEvery = 5 * time.Second

const (
	// clearScreen moves to the upper left corner and clears what is below.
	clearScreen = "\x1b[H\x1b[2J"
	// A screen of its own, so that what stood on the terminal comes back.
	enterScreen = "\x1b[?1049h"
	leaveScreen = "\x1b[?1049l"
)

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
	_, err = f.report(first, hub)
	if err := interrupted(ctx); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	w := &follower{statusFlags: f, hub: hub, out: cmd.OutOrStdout(), changed: make(chan struct{}, 1)}
	if err := w.start(ctx); err != nil {
		return err
	}
	if w.Terminal != nil {
		fmt.Fprint(w.out, enterScreen)
		defer fmt.Fprint(w.out, leaveScreen)
	}
	return w.loop(ctx)
}

// follower shows changes.
type follower struct {
	*statusFlags
	out     io.Writer
	cache   cache.Cache
	changed chan struct{}
	hub     client.Reader
	last    *overview.Report
	// trouble is why the hub cannot be asked.
	trouble string
	// size is that of the terminal, width and height, when it was drawn on.
	size [2]int
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
	watched := w.watched()
	w.cache, err = cache.New(config, cache.Options{Scheme: scheme, Mapper: hubMapper(), ByObject: watched})
	if err != nil {
		return explainHub(err)
	}
	w.settled = true                       // the cache has no more than that
	go func() { _ = w.cache.Start(ctx) }() // it ends with ctx, without an error
	first, cancel := context.WithTimeout(ctx, hubTimeout)
	defer cancel()
	for obj := range watched {
		informer, err := w.cache.GetInformer(first, obj)
		if err := interrupted(ctx); err != nil {
			return err
		}
		if err != nil {
			return fmt.Errorf("the hub does not answer a watch of %s within %s: may you list and watch them?", reflect.TypeOf(obj).Elem().Name(), hubTimeout)
		}
		if _, err := informer.AddEventHandler(w.handler()); err != nil {
			return explainHub(err)
		}
	}
	return nil
}

func (w *follower) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { w.wake() },
		UpdateFunc: func(any, any) { w.wake() },
		DeleteFunc: func(any) { w.wake() },
	}
}

// ask asks the hub for next to nothing and returns why it does not answer.
func (w *follower) ask(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, askEvery)
	defer cancel()
	if err := w.hub.List(ctx, &fleet.GitRepoList{}, client.InNamespace(w.namespace), client.Limit(1)); err != nil {
		return "the hub does not answer, what is shown may be old: " + explainHub(err).Error()
	}
	return ""
}

func (w *follower) wake() {
	select {
	case w.changed <- struct{}{}:
	default: // it is awake
	}
}

func (w *follower) loop(ctx context.Context) error {
	ticks := time.NewTicker(askEvery)
	defer ticks.Stop()
	w.wake()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil // Ctrl-C is how this ends
		case <-ticks.C:
			err = w.show(ctx, w.ask(ctx))
		case <-w.changed:
			pause(ctx, settle)
			err = w.show(ctx, w.trouble)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// pause waits for d, or less where ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// show writes the report if there is anything new to it.
func (w *follower) show(ctx context.Context, trouble string) error {
	report, err := w.report(ctx, w.cache)
	if err != nil || ctx.Err() != nil {
		return err
	}
	var now [2]int
	if w.Terminal != nil {
		now[0], now[1] = w.Terminal()
	}
	if reflect.DeepEqual(report, w.last) && trouble == w.trouble && now == w.size {
		return nil
	}
	w.size = now
	if w.Terminal != nil {
		err = w.redraw(report, trouble)
	} else {
		err = w.writeLines(report, trouble)
	}
	w.last, w.trouble = report, trouble
	return err
}

// below is how many rows a picture has below the report.
const below = 4

// redraw writes the whole picture at once, so that it does not flicker.
func (w *follower) redraw(report *overview.Report, trouble string) error {
	var text, picture bytes.Buffer
	if err := report.Write(&text, w.paintState); err != nil {
		return err
	}
	height := w.size[1]
	if height > 0 {
		height = max(1, height-below)
	}
	picture.WriteString(clearScreen)
	picture.WriteString(fit(text.String(), w.size[0], height))
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
	switch {
	case trouble == w.trouble:
	case trouble == "":
		lines = append(lines, "the hub answers again")
	default:
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
