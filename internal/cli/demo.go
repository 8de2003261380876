package cli

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/flotilla-sh/flotilla/internal/demo"
)

func newDemo(g *globals) *cobra.Command {
	o := demo.Options{}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the main job on real control planes on this machine",
		Long: `Starts a hub and three clusters, brings the examples to them from a Git
server, changes them by a commit, by hand and by a revert, and lets a cluster
go away and come back. It prints every command that it runs, and takes about
a minute. It needs no cluster, no root and no network.`,
		Example: "  flotilla demo\n  flotilla demo --keep",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			program, err := os.Executable()
			if err != nil {
				return err
			}
			o.Flotilla, o.Out, o.Colour = program, cmd.OutOrStdout(), g.Colour
			if o.Dir, err = filepath.Abs(o.Dir); err != nil {
				return err
			}
			err = demo.Run(cmd.Context(), o)
			if interruption := interrupted(cmd.Context()); interruption != nil {
				return interruption
			}
			return err
		},
	}
	cmd.Flags().StringVar(&o.Source, "source", ".", "checkout of Flotilla, for examples/ and bundles/")
	cmd.Flags().StringVar(&o.Dir, "dir", ".demo", "directory for the lab and the clone; it must not exist")
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "leave everything running at the end, also after a failure")
	return cmd
}
