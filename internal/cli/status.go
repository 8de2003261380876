package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/cli/overview"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// hubTimeout is how long the hub may take to answer.
const hubTimeout = 20 * time.Second

// statusFlags are the flags of "status".
type statusFlags struct {
	hubFlags
	repo     string
	all      bool
	watch    bool
	exitCode bool
	format   output
	sight
}

func newStatus(g *globals) *cobra.Command {
	flags := &statusFlags{hubFlags: hubFlags{globals: g}}
	cmd := &cobra.Command{
		Use:   "status [GITREPO]",
		Short: "Show what is where, what is wrong and why",
		Long: `Shows the GitRepos and HelmOps of a namespace, the state of every bundle on every cluster,
and what is wrong: on which object, why, and, where something was changed on a
cluster, the field, its wanted and its live value and the program that did it.
Where a list is longer than 40 lines, what is all Ready is counted; -o json has
everything.

The exit code is 0 whatever the states are, as long as they could be read. With
--exit-code it is 1 where not everything is Ready, or where there is nothing.

With --watch the picture is drawn again with every change; where the output is
not a terminal, each change is a line.`,
		Example: `  flotilla status
  flotilla status platform --watch
  flotilla status -A -o json
  flotilla status platform --exit-code && echo all ready`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("%q takes at most one GITREPO, got %d arguments", cmd.CommandPath(), len(args))
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return flags.completeRepos(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				flags.repo = args[0]
			}
			return flags.run(cmd)
		},
	}
	flags.hubFlags.add(cmd, "fleet-default")
	cmd.Flags().BoolVarP(&flags.all, "all-namespaces", "A", false, "all namespaces")
	cmd.Flags().BoolVarP(&flags.watch, "watch", "w", false, "go on and show changes until Ctrl-C")
	cmd.Flags().BoolVar(&flags.exitCode, "exit-code", false, "end with 1 where not everything is Ready, or where there is nothing")
	addOutput(cmd, &flags.format)
	return cmd
}

// check refuses flags that contradict each other.
func (f *statusFlags) check(cmd *cobra.Command) error {
	switch {
	case f.all && cmd.Flags().Changed("namespace"):
		return usagef("--all-namespaces and --namespace %s contradict each other", f.namespace)
	case f.watch && f.exitCode:
		return usagef("--watch never ends with a state for --exit-code; use one of them")
	case f.watch && f.format != textOutput:
		return usagef("--watch shows text; leave out -o %s", f.format)
	}
	return nil
}

func (f *statusFlags) run(cmd *cobra.Command) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	if f.watch {
		return f.follow(cmd)
	}
	hub, err := f.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), hubTimeout)
	defer cancel()
	report, err := f.report(ctx, hub)
	if err := interrupted(cmd.Context()); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	err = f.format.write(cmd.OutOrStdout(), report, func(w io.Writer) error { return report.Write(w, f.paintState) })
	if nothing := report.Nothing(); err == nil && f.exitCode && nothing != "" {
		return errors.New(nothing)
	}
	if err == nil && f.exitCode && !report.Ready {
		return fmt.Errorf("not everything is ready: %d problems", len(report.Problems))
	}
	return err
}

// report reads the hub.
func (f *statusFlags) report(ctx context.Context, from client.Reader) (*overview.Report, error) {
	in, err := f.gather(ctx, from)
	if err != nil {
		return nil, explainHub(err)
	}
	if f.repo != "" && !hasRepo(in.GitRepos, f.repo) {
		return nil, f.noSuchRepo(in.GitRepos)
	}
	report := overview.Make(in)
	return &report, nil
}

// only is the namespace that is looked at; empty for all.
func (f *statusFlags) only() string {
	if f.all {
		return ""
	}
	return f.namespace
}

func hasRepo(repos []fleet.GitRepo, name string) bool {
	for i := range repos {
		if repos[i].Name == name {
			return true
		}
	}
	return false
}

func (f *statusFlags) noSuchRepo(repos []fleet.GitRepo) error {
	where := "namespace " + f.namespace
	if f.all {
		where = "any namespace"
	}
	if len(repos) == 0 {
		return fmt.Errorf("there is no GitRepo in %s", where)
	}
	var names []string
	for i := range repos {
		names = append(names, repos[i].Name)
	}
	return fmt.Errorf("there is no GitRepo %q in %s; there is %s", f.repo, where, strings.Join(names, ", "))
}

func (f *statusFlags) completeRepos(ctx context.Context) []cobra.Completion {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	hub, err := f.client()
	if err != nil {
		return nil
	}
	var options []client.ListOption
	if !f.all {
		options = append(options, client.InNamespace(f.namespace))
	}
	repos := &fleet.GitRepoList{}
	if err := hub.List(ctx, repos, options...); err != nil {
		return nil
	}
	var names []cobra.Completion
	for i := range repos.Items {
		names = append(names, cobra.CompletionWithDesc(repos.Items[i].Name, repos.Items[i].Spec.Repo))
	}
	return names
}

// paintState colours a text by the state that it speaks of.
func (f *statusFlags) paintState(state, text string) string {
	switch state {
	case string(fleet.Ready):
		return f.paint(green, text)
	case string(fleet.ErrApplied), string(fleet.Modified), string(fleet.StateOffline):
		return f.paint(red, text)
	case fleet.ReasonNotYetEffective, "Kept", "Paused", "NoClusters":
		return text
	}
	return f.paint(yellow, text)
}
