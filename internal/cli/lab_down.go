package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flotilla-sh/flotilla/internal/lab"
)

func newLabDown(flags *labFlags) *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use:     "down",
		Short:   "End the lab and remove all of its data",
		Long:    "Ends the lab and removes its directory, repositories included. It also clears\nup after a lab that was killed.",
		Example: "  flotilla lab down\n  flotilla lab down --keep   # leaves the logs",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := lab.Down(cmd.Context(), flags.state, keep); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "the lab is down")
			return err
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the logs")
	return cmd
}
