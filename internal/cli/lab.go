package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/flotilla-sh/flotilla/internal/lab"
	"github.com/flotilla-sh/flotilla/internal/lab/gitserver"
)

// labFlags are common to the commands of the lab.
type labFlags struct {
	*globals
	state string
}

func newLab(g *globals) *cobra.Command {
	flags := &labFlags{globals: g}
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Run a hub, spokes and a Git server on this machine",
		Long: `Runs a fleet on this machine to try things out: a hub and any number of spokes,
which are real Kubernetes control planes whose pods become Ready without being
run, a Git server, Flotilla's hub controller and an agent for each spoke. They
are ordinary processes: no containers, no root, no network.`,
		Example: "  flotilla lab up --spokes 3\n  flotilla lab stop agent/prod\n  flotilla lab down",
		Args:    noArgs,
		RunE:    showHelp,
	}
	cmd.PersistentFlags().StringVar(&flags.state, "state", g.LabDir, "directory of the lab; labs in different ones run side by side")
	cmd.AddCommand(
		newLabUp(flags),
		newLabStatus(flags),
		newLabStop(flags),
		newLabStart(flags),
		newLabDown(flags),
		newLabSupervise(),
		newLabGitServer(),
	)
	return cmd
}

// newLabSupervise is the process behind "lab up".
func newLabSupervise() *cobra.Command {
	return &cobra.Command{
		Use:    "supervise",
		Short:  "Be the supervisor of a lab, for lab up",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return lab.Supervise(cmd.Context(), cmd.InOrStdin(), os.NewFile(lab.ReportsFD, "reports"))
		},
	}
}

// newLabGitServer is the Git server of a lab.
func newLabGitServer() *cobra.Command {
	var root, listen string
	cmd := &cobra.Command{
		Use:     "git-server",
		Short:   "Serve Git repositories over smart HTTP, with push",
		Example: "  flotilla lab git-server --root repositories --listen 127.0.0.1:3000",
		Hidden:  true,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return gitserver.ListenAndServe(cmd.Context(), root, listen)
		},
	}
	cmd.Flags().StringVar(&root, "root", "git", "directory with the repositories, NAME.git each")
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "address to listen on")
	return cmd
}
