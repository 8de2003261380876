package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flotilla-sh/flotilla/internal/lab"
)

// partNames is part of the help of the commands that take one.
const partNames = `A part is a spoke (dev), the agent of a spoke (agent/dev), the hub's cluster
(hub), Flotilla's hub controller (hub-controller) or the Git server (git).`

func newLabStop(flags *labFlags) *cobra.Command {
	return newPartCommand(flags, &cobra.Command{
		Use:     "stop PART",
		Short:   "Stop a part of the lab; its data is kept",
		Long:    "Stops a part of the lab; its data is kept.\n\n" + partNames,
		Example: "  flotilla lab stop agent/prod\n  flotilla lab stop hub",
	}, "stopped", (*lab.Client).StopUnit)
}

func newLabStart(flags *labFlags) *cobra.Command {
	return newPartCommand(flags, &cobra.Command{
		Use:     "start PART",
		Short:   "Start a part of the lab that was stopped",
		Long:    "Starts a part of the lab that was stopped, and returns when it is ready.\n\n" + partNames,
		Example: "  flotilla lab start agent/prod\n  flotilla lab start hub",
	}, "running", (*lab.Client).StartUnit)
}

// newPartCommand completes a command that does something to one part.
func newPartCommand(flags *labFlags, cmd *cobra.Command, done string, act func(*lab.Client, context.Context, string) error) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usagef("%q takes one part of the lab, got %d arguments", cmd.CommandPath(), len(args))
		}
		return nil
	}
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return flags.completeParts(), cobra.ShellCompDirectiveNoFileComp
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := lab.Open(flags.state)
		if err != nil {
			return err
		}
		if err := act(client, cmd.Context(), args[0]); err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is %s\n", args[0], done)
		return err
	}
	return cmd
}

func (f *labFlags) completeParts() []cobra.Completion {
	status, err := lab.ReadStatus(f.state)
	if err != nil {
		return nil
	}
	var parts []cobra.Completion
	for _, unit := range status.Units {
		parts = append(parts, cobra.CompletionWithDesc(unit.Name, string(unit.State)))
	}
	return parts
}
