package cli

import "github.com/spf13/cobra"

func newStatus(g *globals) *cobra.Command { return &cobra.Command{Use: "status"} }
