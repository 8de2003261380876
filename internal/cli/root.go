// Package cli is the command line of Flotilla, a file per command.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit codes of the program.
const (
	// ExitOK means that the command did what it should.
	ExitOK = 0
	// ExitFailed means that it could not.
	ExitFailed = 1
	// ExitUsage means that it was called in a wrong way.
	ExitUsage = 2
	// ExitInterrupted means that a signal has ended it.
	ExitInterrupted = 130
)

// Env is what a command gets from the process that it runs in.
type Env struct {
	// Args are the arguments without the program's name.
	Args []string
	// In, Out and Err are the standard streams.
	In       io.Reader
	Out, Err io.Writer
	// Colour says that Out is a terminal that wants colour.
	Colour bool
	// Terminal returns the size of the terminal that Out is, 0 where nobody knows
	// it; nil where Out is none.
	Terminal func() (width, height int)
	// Version is the version of a release; it may be empty.
	Version string
	// Programs is the directory with the other programs of Flotilla.
	Programs string
	// LabDir is where "flotilla lab" keeps a lab unless told otherwise.
	LabDir string
}

// globals are the flags that every command has.
type globals struct {
	Env
	kubeconfig string
}

// Run runs the command line and returns the program's exit code.
func Run(ctx context.Context, env Env) int {
	root := newRoot(&globals{Env: env})
	root.SetArgs(env.Args)
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	strictHelp(root)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	exit := (*exitError)(nil)
	if errors.As(err, &exit) && exit.err == nil {
		return exit.code // all is said
	}
	for _, e := range eachOf(err) {
		fmt.Fprintln(env.Err, "error:", e)
	}
	if ctx.Err() != nil {
		return ExitInterrupted
	}
	if usage := (*usageError)(nil); errors.As(err, &usage) {
		fmt.Fprintf(env.Err, "See '%s --help'.\n", cmd.CommandPath())
		return ExitUsage
	}
	if exit != nil {
		return exit.code
	}
	return ExitFailed
}

// Commands returns the commands, for what describes them.
func Commands(env Env) *cobra.Command { return newRoot(&globals{Env: env}) }

func newRoot(g *globals) *cobra.Command {
	root := &cobra.Command{
		Use:           "flotilla",
		Short:         "Bring commits to fleets of Kubernetes clusters",
		Example:       "  flotilla lab up --spokes 3\n  flotilla status --watch\n  flotilla render examples/helm -l env=prod\n  flotilla lint examples",
		Args:          noArgs,
		RunE:          showHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentFlags().StringVar(&g.kubeconfig, "kubeconfig", "",
		"kubeconfig of the hub (default: as kubectl: $KUBECONFIG, then ~/.kube/config)")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(
		newStatus(g),
		newRender(),
		newApply(g),
		newLint(),
		newSchema(),
		newDemo(g),
		newLab(g),
		newVersion(g),
	)
	hideEmptyDefaults(root)
	return root
}

// strictHelp refuses what the commands that cobra brings do not know.
func strictHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				found, rest, err := root.Find(args)
				if err != nil || len(rest) == 0 {
					return err
				}
				return noArgs(found, rest)
			}
		case "completion":
			cmd.Args, cmd.RunE = noArgs, showHelp
		}
	}
}

// hideEmptyDefaults keeps "(default [])" out of the help.
func hideEmptyDefaults(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.DefValue == "[]" {
			f.DefValue = ""
		}
	})
	for _, below := range cmd.Commands() {
		hideEmptyDefaults(below)
	}
}

// usageError is an error in how the program was called.
type usageError struct{ error }

// Unwrap returns the cause.
func (e *usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// exitError ends the program with a code of its own; without an error inside
// there is nothing more to tell.
type exitError struct {
	code int
	err  error
}

// Error returns what is to be told.
func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// Unwrap returns the cause.
func (e *exitError) Unwrap() error { return e.err }

// noArgs is for commands without arguments; for one that has commands below
// it, an argument is a command that does not exist.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasSubCommands() {
		return usagef("%q takes no arguments, got %q", cmd.CommandPath(), args[0])
	}
	cmd.SuggestionsMinimumDistance = 2
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		return usagef("unknown command %q for %q; did you mean %s?", args[0], cmd.CommandPath(), strings.Join(similar, " or "))
	}
	return usagef("unknown command %q for %q", args[0], cmd.CommandPath())
}

// exactArgs is for commands that take these arguments, no more and no less.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		return usagef("%q takes one %s, got %d arguments", cmd.CommandPath(), strings.Join(names, " and one "), len(args))
	}
}

func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }
