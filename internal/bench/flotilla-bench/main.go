// Command flotilla-bench measures what a fleet costs, and prints each figure
// beside its floor.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-sh/flotilla/internal/bench/report"
	"github.com/flotilla-sh/flotilla/internal/bench/rows"
)

func main() {
	// Memory is cheap here, and time is taken from what is measured.
	debug.SetGCPercent(400)
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "flotilla-bench:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// flags are the command line.
type flags struct {
	bin, charts, out, commit string
	rows, hubArgs            []string
	n, repeats               int
	heartbeat                time.Duration
	requests                 bool
	profile, profiles        string
}

func command() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:           "flotilla-bench",
		Short:         "Measure what a fleet costs",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), f) },
	}
	cmd.AddCommand(compare())
	cmd.Flags().StringVar(&f.bin, "bin", "bin", "directory of the built programs")
	cmd.Flags().StringVar(&f.charts, "charts", "", "directory of chart archives for the rows that render charts")
	cmd.Flags().StringVar(&f.out, "out", "", "file for the figures as JSON")
	cmd.Flags().StringVar(&f.commit, "commit", "", "what is measured (default: the commit of the working directory)")
	cmd.Flags().StringSliceVar(&f.rows, "row", nil, "rows to measure (default: all): "+strings.Join(rows.Names(), ", "))
	cmd.Flags().StringSliceVar(&f.hubArgs, "hub-args", nil, "arguments of flotilla-hub, such as --pprof-bind-address=localhost:6060")
	cmd.Flags().IntVar(&f.n, "n", 0, "size of the fleet (default: that of each row)")
	cmd.Flags().IntVar(&f.repeats, "repeats", 0, "how often each row is measured (default: 3; the longest rows once)")
	cmd.Flags().DurationVar(&f.heartbeat, "heartbeat", time.Minute, "time between two heartbeats of an agent")
	cmd.Flags().BoolVar(&f.requests, "requests", false, "print the requests of each row by program, verb and resource")
	cmd.Flags().StringVar(&f.profiles, "profiles", "", "directory for profiles of hub, render processes and API server while bundles are created and changed")
	cmd.Flags().StringVar(&f.profile, "cpuprofile", "", "file for a CPU profile of the simulated agents")
	return cmd
}

// compare shows two files of figures beside each other.
func compare() *cobra.Command {
	return &cobra.Command{
		Use:   "compare BASE.json HEAD.json",
		Short: "Show two files of figures beside each other",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, files []string) error {
			base, err := report.Read(files[0])
			if err != nil {
				return err
			}
			head, err := report.Read(files[1])
			if err != nil {
				return err
			}
			return report.Compare(cmd.OutOrStdout(), base, head)
		},
	}
}

func run(ctx context.Context, f flags) error {
	chosen, err := rows.Find(f.rows)
	if err != nil {
		return err
	}
	stop, err := profile(f.profile)
	if err != nil {
		return err
	}
	defer stop()
	began := time.Now()
	options := rows.Options{Bin: f.bin, Charts: f.charts, Heartbeat: f.heartbeat, HubArgs: f.hubArgs, Profiles: f.profiles, Log: func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%7.1fs  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}}
	file := report.File{Commit: f.commit, Date: began.UTC(), Machine: report.ThisMachine()}
	if file.Commit == "" {
		file.Commit = head(ctx)
	}
	var failed []error
	for _, row := range chosen {
		measured, err := measure(ctx, row, options, f)
		if ctx.Err() != nil {
			interrupted := errors.New("interrupted: what had been started is stopped and removed")
			return errors.Join(show(file, f.requests), interrupted)
		}
		failed = append(failed, err)
		file.Rows = append(file.Rows, measured)
		if f.out != "" {
			if err := file.Write(f.out); err != nil {
				return err
			}
		}
	}
	return errors.Join(append(failed, show(file, f.requests))...)
}

func show(file report.File, requests bool) error {
	err := file.Table(os.Stdout)
	for _, row := range file.Rows {
		if requests && err == nil {
			err = row.Requests(os.Stdout)
		}
	}
	return err
}

// measure repeats a row.
func measure(ctx context.Context, row rows.Row, o rows.Options, f flags) (report.Row, error) {
	out := report.Row{Name: row.Name, Title: row.Title, N: row.N}
	if f.n > 0 {
		out.N = f.n
	}
	repeats := cmp.Or(f.repeats, row.Repeats, 3)
	var runs [][]report.Figure
	for i := range repeats {
		o.Log("row %s, N=%d, %d of %d", row.Name, out.N, i+1, repeats)
		r, err := row.Measure(ctx, o, out.N)
		if err != nil {
			out.Error = err.Error()
			return out, err
		}
		runs, out.Phases = append(runs, r.Figures), r.Phases
	}
	out.Figures = report.Summarize(runs)
	return out, nil
}

// profile starts a CPU profile, unless file is empty.
func profile(file string) (stop func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	out, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	return pprof.StopCPUProfile, pprof.StartCPUProfile(out)
}

// head is the commit of the working directory.
func head(ctx context.Context) string {
	text, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}
