package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/flotilla-sh/flotilla/internal/lab"
)

func newLabStatus(flags *labFlags) *cobra.Command {
	var format output
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show what runs in the lab and how to reach it",
		Example: "  flotilla lab status\n  flotilla lab status -o json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			status, err := lab.ReadStatus(flags.state)
			if err != nil {
				return err
			}
			return format.write(cmd.OutOrStdout(), status, func(w io.Writer) error {
				return flags.labText(w, status)
			})
		},
	}
	addOutput(cmd, &format)
	return cmd
}

func (f *labFlags) labText(w io.Writer, status lab.Status) error {
	fmt.Fprintf(w, "Directory  %s\nGit        %s/NAME.git (push makes new ones)\nkubectl    %s\n\n", status.Dir, status.Git.URL, status.Kubectl)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CLUSTER\tLABELS\tKUBECONFIG")
	for _, c := range append([]lab.ClusterStatus{status.Hub}, status.Spokes...) {
		fmt.Fprintf(table, "%s\t%s\t%s\n", c.Name, labelText(c.Labels), c.Kubeconfig)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	// The coloured column comes last: escapes would upset the alignment.
	fmt.Fprintln(table, "PART\tMEMORY\tPIDS\tSTATE")
	for _, unit := range status.Units {
		pids, memory := processes(unit)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", unit.Name, memory, pids, f.paint(stateColour(unit.State), string(unit.State)))
	}
	return table.Flush()
}

func processes(unit lab.UnitStatus) (pids, memory string) {
	var ids []string
	var bytes int64
	for _, p := range unit.Processes {
		if p.Alive() {
			ids = append(ids, strconv.Itoa(p.PID))
			bytes += p.MemoryBytes()
		}
	}
	if len(ids) == 0 {
		return "-", "-"
	}
	return strings.Join(ids, ","), fmt.Sprintf("%d MiB", bytes>>20)
}

func labelText(labels map[string]string) string {
	if len(labels) == 0 {
		return "-"
	}
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	return strings.Join(pairs, ",")
}

func stateColour(state lab.State) string {
	switch state {
	case lab.Running:
		return green
	case lab.Failed:
		return red
	default:
		return yellow
	}
}
