// Package demo shows the main job on real control planes: from a commit to
// every cluster, drift, rollback, and a cluster that is away. It runs nothing
// but the product's own commands, kubectl and git, and prints each of them.
package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Options are what a demo is run with.
type Options struct {
	// Source is a checkout of Flotilla, with examples/ and bundles/.
	Source string
	// Dir is the demo's directory; it must not exist.
	Dir string
	// Flotilla is the program flotilla; kubectl is beside it.
	Flotilla string
	// Keep leaves the lab running at the end.
	Keep bool
	// Out gets everything that the demo says.
	Out io.Writer
	// Colour says that Out is a terminal that wants colour.
	Colour bool
}

// Step is a part of the demo.
type Step struct {
	// Title says what is shown.
	Title string
	run   func(context.Context, *session) error
}

// Steps returns the demo's steps in order.
func Steps() []Step {
	return []Step{
		{"start a hub and three spokes as real Kubernetes control planes", startLab},
		{"push the examples to the Git server", pushExamples},
		{"declare a GitRepo: every cluster becomes Ready", declare},
		{"push a commit: it rolls through", pushCommit},
		{"somebody edits an object on prod by hand: Modified, and by whom", drift},
		{"git revert: every cluster runs what it ran before", revert},
		{"the agent of staging stops: offline, not Ready", goOffline},
		{"it comes back and catches up", comeBack},
	}
}

// Run runs all steps, or stops at the first that fails and says which.
func Run(ctx context.Context, o Options) (err error) {
	s, err := newSession(o)
	if err != nil {
		return err
	}
	defer func() { err = s.finish(err) }()
	for i, step := range Steps() {
		s.heading(fmt.Sprintf("%d. %s", i+1, step.Title))
		begin := time.Now()
		if err := step.run(ctx, s); err != nil {
			return fmt.Errorf("step %d (%s): %w", i+1, step.Title, err)
		}
		s.took = append(s.took, took{step.Title, time.Since(begin)})
	}
	s.summary()
	return nil
}

// newSession prepares the demo's directory.
func newSession(o Options) (*session, error) {
	for _, dir := range []string{"examples", "bundles"} {
		if _, err := os.Stat(filepath.Join(o.Source, dir)); err != nil {
			return nil, fmt.Errorf("the demo needs %s/: run it in a checkout of Flotilla, or name one by --source: %w", dir, err)
		}
	}
	if _, err := os.Stat(o.Dir); err == nil {
		return nil, fmt.Errorf("%s exists: another demo runs there, or was kept; "+
			"end it with: flotilla lab down --state %s; then remove the directory", o.Dir, filepath.Join(o.Dir, "lab"))
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	return &session{Options: o, lab: filepath.Join(o.Dir, "lab"), work: filepath.Join(o.Dir, "repository")}, nil
}
