package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/flotilla-sh/flotilla/internal/lint"
	"github.com/flotilla-sh/flotilla/internal/render/worker"
)

// lintFlags are the flags of "lint".
type lintFlags struct {
	labels      map[string]string
	clusters    string
	repo        string
	kubeVersion string
	apis        []string
	timeout     time.Duration
	strict      bool
	format      lintFormat
	charts      chartFlags
}

func newLint() *cobra.Command {
	flags := &lintFlags{}
	cmd := &cobra.Command{
		Use:   "lint DIR",
		Short: "Find all that is wrong with the bundles in a directory",
		Long: `Finds all that is wrong with the bundles in a directory, with the code that the
hub uses, and asks no cluster: fleet.yaml, values files, what charts, Kustomize
and YAML render to, fields that the API server does not know, lists with a key
that is there twice, objects that are in two bundles.

Every bundle is rendered for example clusters: one without labels, and one that
fits each target and customization. Labels that values need are made up. Real
clusters are given with --clusters.

The exit code is 0 where there is no error, 1 where there is one (with --strict
also where there is a warning), and 2 where the directory could not be looked at.`,
		Example: `  flotilla lint .
  flotilla lint . -o github --strict
  kubectl get clusters.fleet.cattle.io -A -o yaml > clusters.yaml && flotilla lint . --clusters clusters.yaml`,
		Args: exactArgs("DIR"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args[0]) },
	}
	flags.add(cmd)
	return cmd
}

func (f *lintFlags) add(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringToStringVarP(&f.labels, "label", "l", nil, "a label of all example clusters as `key=value`; may be repeated")
	set.StringVar(&f.clusters, "clusters", "", "YAML `file` with Clusters to render for beside the examples")
	set.StringVar(&f.repo, "gitrepo", "", "name of the GitRepo, with which the names of bundles begin (default: none)")
	set.StringVar(&f.kubeVersion, "kube-version", "", "Kubernetes version of the clusters (default "+newestKubernetes()+")")
	set.StringArrayVar(&f.apis, "api", nil, "a kind that the clusters serve beside Kubernetes' own, as group/version/Kind, with :Cluster after a kind without namespaces; may be repeated")
	set.DurationVar(&f.timeout, "timeout", time.Minute, "how long one render may take")
	set.BoolVar(&f.strict, "strict", false, "end with 1 where there is a warning")
	f.format.add(cmd)
	f.charts.add(set)
}

func (f *lintFlags) run(cmd *cobra.Command, name string) error {
	report, err := f.look(cmd, name)
	if err != nil {
		return &exitError{code: ExitUsage, err: err}
	}
	if err := f.format.write(cmd.OutOrStdout(), report); err != nil {
		return &exitError{code: ExitUsage, err: err}
	}
	if report.Errors > 0 || f.strict && report.Warnings > 0 {
		return &exitError{code: ExitFailed}
	}
	return nil
}

// look makes the report.
func (f *lintFlags) look(cmd *cobra.Command, name string) (*lint.Report, error) {
	offers, err := capabilities(f.kubeVersion, f.apis)
	if err != nil {
		return nil, err
	}
	given, err := readClusters(f.clusters)
	if err != nil {
		return nil, err
	}
	dirs, err := openDirectories([]string{name})
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program to start renders with: %w", err)
	}
	pool := worker.NewPool(worker.Options{Executable: self, Deadline: f.timeout})
	defer pool.Close()
	progress := newProgress(cmd.ErrOrStderr(), time.Now)
	report, err := lint.Run(cmd.Context(), lint.Input{
		Tree:     dirs.tree,
		Scan:     dirs.scanInput(f.repo, name),
		Clusters: given, Labels: f.labels, Offers: offers, Renderer: pool,
		Bring: f.charts.bring, Progress: progress.tell,
	})
	if stopped := context.Cause(cmd.Context()); stopped != nil {
		return nil, fmt.Errorf("interrupted: %w", stopped)
	}
	if err != nil {
		return nil, err
	}
	if len(dirs.paths) == 0 {
		for i := range report.Problems {
			report.Problems[i].File = filepath.ToSlash(filepath.Join(name, report.Problems[i].File))
		}
	}
	return report, nil
}

// lintFormat is text, json, yaml or github.
type lintFormat string

const githubFormat lintFormat = "github"

func (f *lintFormat) add(cmd *cobra.Command) {
	*f = lintFormat(textOutput)
	cmd.Flags().VarP(f, "output", "o", "how to write the problems: text, json, yaml, or github for annotations in a workflow")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(
		[]cobra.Completion{"text\tfor people and editors", "json\tfor programs", "yaml\tfor both", "github\tfor workflows"}, cobra.ShellCompDirectiveNoFileComp))
}

// String returns the format's name.
func (f *lintFormat) String() string { return string(*f) }

// Type names the kind of value in the help.
func (f *lintFormat) Type() string { return "format" }

// Set takes the format's name.
func (f *lintFormat) Set(name string) error {
	var known output
	if name != string(githubFormat) && known.Set(name) != nil {
		return usagef("use text, json, yaml or github")
	}
	*f = lintFormat(name)
	return nil
}

func (f lintFormat) write(w io.Writer, report *lint.Report) error {
	if f == githubFormat {
		return report.GitHub(w)
	}
	return output(f).write(w, report, report.Text)
}

// progress tells how far long work is, every few seconds.
type progress struct {
	to   io.Writer
	now  func() time.Time
	next time.Time
}

// progressInterval is how often progress is told.
const progressInterval = 3 * time.Second

func newProgress(to io.Writer, now func() time.Time) *progress {
	return &progress{to: to, now: now, next: now().Add(progressInterval)}
}

func (p *progress) tell(done, all int) {
	if now := p.now(); done < all && now.After(p.next) {
		p.next = now.Add(progressInterval)
		fmt.Fprintf(p.to, "%d of %d bundles are done\n", done, all)
	}
}
