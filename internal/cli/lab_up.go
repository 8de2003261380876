package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/flotilla-sh/flotilla/internal/lab"
)

// labUp are the flags of "lab up".
type labUp struct {
	*labFlags
	count    int
	named    []string
	empty    bool
	keepLogs bool
	withPID  int
	hubArgs  []string
	agents   []string
	programs lab.Programs
}

func newLabUp(flags *labFlags) *cobra.Command {
	up := &labUp{labFlags: flags, programs: lab.ProgramsIn(flags.Programs)}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a lab in the background",
		Long: `Starts a lab in the background and returns when everything in it is ready.
When it is interrupted before that, nothing stays behind.`,
		Example: `  flotilla lab up                  # spokes dev, staging and prod
  flotilla lab up --spokes 5
  flotilla lab up --spoke a=env=dev,region=eu --spoke b=env=prod
  flotilla lab up --state ./lab2   # a second one beside it
  flotilla lab up --with-pid $$    # goes with the shell or script
  flotilla lab up --agent-arg --heartbeat=5s`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return up.run(cmd) },
	}
	cmd.Flags().IntVar(&up.count, "spokes", 3, "number of spokes: dev, staging, prod, spoke-4 and so on")
	cmd.Flags().StringArrayVar(&up.named, "spoke", nil, "a spoke as NAME=label=value,label=value; may be repeated")
	cmd.Flags().BoolVar(&up.empty, "empty", false, "only clusters and the Git server, without Flotilla in them")
	cmd.Flags().BoolVar(&up.keepLogs, "keep", false, "keep the logs when the lab ends, or fails to start")
	cmd.Flags().IntVar(&up.withPID, "with-pid", 0, "take the lab down when this process ends")
	cmd.Flags().StringArrayVar(&up.hubArgs, "hub-arg", nil, "an argument for flotilla-hub; may be repeated")
	cmd.Flags().StringArrayVar(&up.agents, "agent-arg", nil, "an argument for every flotilla-agent; may be repeated")
	cmd.Flags().StringVar(&up.programs.ControlPlane, "controlplane", up.programs.ControlPlane, "program with etcd, kube-apiserver and the others")
	cmd.Flags().StringVar(&up.programs.Hub, "hub-program", up.programs.Hub, "the program flotilla-hub")
	cmd.Flags().StringVar(&up.programs.Agent, "agent-program", up.programs.Agent, "the program flotilla-agent")
	return cmd
}

func (u *labUp) run(cmd *cobra.Command) error {
	if len(u.named) > 0 && cmd.Flags().Changed("spokes") {
		return usagef("--spokes counts spokes and --spoke names them: use one of the two")
	}
	spokes, err := u.spokes()
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	status, err := lab.Up(cmd.Context(), lab.Options{
		Dir:       u.state,
		Spokes:    spokes,
		Programs:  u.programs,
		Products:  !u.empty,
		HubArgs:   u.hubArgs,
		AgentArgs: u.agents,
		KeepLogs:  u.keepLogs,
		WithPID:   u.withPID,
		Progress: func(step lab.Step) {
			fmt.Fprintf(out, "%6.1fs  %s\n", step.Elapsed.Seconds(), step.Text)
		},
	})
	if err != nil {
		return err
	}
	return u.next(out, status)
}

func (u *labUp) spokes() ([]lab.Spoke, error) {
	if len(u.named) == 0 {
		if u.count < 0 {
			return nil, usagef("--spokes %d: use a number from 0 on", u.count)
		}
		return lab.DefaultSpokes(u.count), nil
	}
	var spokes []lab.Spoke
	for _, text := range u.named {
		spoke, err := lab.ParseSpoke(text)
		if err != nil {
			return nil, &usageError{err}
		}
		spokes = append(spokes, spoke)
	}
	return spokes, nil
}

// next tells how to go on.
func (u *labUp) next(w io.Writer, status lab.Status) error {
	suffix := ""
	if u.state != u.LabDir {
		suffix = " --state " + u.state
	}
	_, err := fmt.Fprintf(w, `
The lab runs. How to go on:

  export PATH=%s/bin:$PATH KUBECONFIG=%s
  kubectl get namespaces                    # the hub; a spoke: --kubeconfig %s/NAME.kubeconfig
  git push %s/NAME.git main
  flotilla lab status%s
  flotilla lab down%s
`, status.Dir, status.Hub.Kubeconfig, status.Dir, status.Git.URL, suffix, suffix)
	return err
}
