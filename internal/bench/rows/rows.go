// Package rows holds what is measured: one file for each row of the table in
// the architecture's section on cost.
package rows

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flotilla-sh/flotilla/internal/bench/meter"
	"github.com/flotilla-sh/flotilla/internal/bench/report"
	"github.com/flotilla-sh/flotilla/internal/bench/sim"
	"github.com/flotilla-sh/flotilla/internal/bench/stage"
)

// Row is something to measure.
type Row struct {
	// Name is what ROW= takes, Title what it is.
	Name, Title string
	// N is the size that the architecture speaks of.
	N int
	// Repeats is how often it is measured; 3 where it is zero.
	Repeats int
	// measure runs it once.
	measure func(context.Context, *Run) error
}

// All are the rows, in the order of the table.
func All() []Row {
	return []Row{
		registration, deploy, fanout, matrix, slope, payload, chunks, fetch, chartRow, largeChartRow, restart, herd, heartbeats, agent, board, pollRow, scanRow, largeRow,
	}
}

// Find returns the rows of these names, or all.
func Find(names []string) ([]Row, error) {
	if len(names) == 0 {
		return All(), nil
	}
	var out []Row
	for _, name := range names {
		i := slices.IndexFunc(All(), func(r Row) bool { return r.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no row %q; there are: %s", name, strings.Join(Names(), ", "))
		}
		out = append(out, All()[i])
	}
	return out, nil
}

// Names are the names of all rows.
func Names() []string {
	var out []string
	for _, r := range All() {
		out = append(out, r.Name)
	}
	return out
}

// Options are what a run is made with.
type Options struct {
	// Bin is the directory of the programs.
	Bin string
	// Charts is a directory of chart archives; it may be empty.
	Charts string
	// HubArgs are given to flotilla-hub.
	HubArgs []string
	// Heartbeat is that of the agents.
	Heartbeat time.Duration
	// Profiles is a directory for CPU profiles of hub and API server in the
	// phases of a rollout; empty makes none.
	Profiles string
	// Log tells what is being done.
	Log func(format string, args ...any)
}

// Run is one measurement of a row.
type Run struct {
	Options
	// N is the number of clusters, or of what the row counts.
	N int
	// Figures and Phases are what was measured.
	Figures []report.Figure
	Phases  []report.Phase
}

// Measure runs a row once.
func (r Row) Measure(ctx context.Context, o Options, n int) (*Run, error) {
	run := &Run{Options: o, N: n}
	if err := r.measure(ctx, run); err != nil {
		return nil, fmt.Errorf("row %s: %w", r.Name, err)
	}
	return run, nil
}

// record adds a figure.
func (r *Run) record(f report.Figure) { r.Figures = append(r.Figures, f) }

// phase adds the requests of a part.
func (r *Run) phase(name string, use meter.Use) {
	r.Phases = append(r.Phases, report.Phase{Name: name, Requests: use.Requests.Rows(), Disagree: use.Disagree})
	if use.Disagree > 0 {
		r.Log("%s: the audit log and the API server's metrics differ by %d requests", name, use.Disagree)
	}
}

// stage starts a lab.
func (r *Run) stage(ctx context.Context) (*stage.Stage, error) {
	return stage.Start(ctx, stage.Options{Bin: r.Bin, Heartbeat: r.Heartbeat, HubArgs: r.HubArgs, Profiles: r.Profiles, Log: r.Log})
}

// fleet starts a lab, measures what its API server can do, and gives it n
// clusters with agents, at rest.
func (r *Run) fleet(ctx context.Context, n int) (*stage.Stage, stage.Raw, error) {
	s, err := r.stage(ctx)
	if err != nil {
		return nil, stage.Raw{}, err
	}
	raw, err := s.MeasureRaw(ctx)
	if err == nil {
		err = r.populate(ctx, s, n)
	}
	if err != nil {
		_ = s.Stop()
		return nil, raw, err
	}
	return s, raw, nil
}

// populate makes n clusters with agents, and waits until they are at rest.
func (r *Run) populate(ctx context.Context, s *stage.Stage, n int) error {
	if err := s.Register(ctx, n); err != nil {
		return err
	}
	if err := s.StartAgents(ctx, sim.Spread(n)); err != nil {
		return err
	}
	return s.Rest(ctx)
}
