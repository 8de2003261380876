package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/flotilla-sh/flotilla/docs/reference"
)

func newSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of fleet.yaml, for editors",
		Long: `Prints the JSON schema of fleet.yaml, with which an editor completes and
explains fields and marks mistakes. Editors with the YAML language server find
it by a first line in the file, or by a setting:

  # yaml-language-server: $schema=./fleet-schema.json`,
		Example: "  flotilla schema > fleet-schema.json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), reference.FleetSchema())
			return err
		},
	}
}
