package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/lint"
	"github.com/flotilla-sh/flotilla/internal/pipeline"
)

// lintFlags are the flags of "lint".
type lintFlags struct {
	renderingFlags
	clusters clusterFile
	format   lintFormat
	maxBytes int64
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
  flotilla lint . -b apps/web:prod.yaml
  kubectl get clusters.fleet.cattle.io -A -o yaml > clusters.yaml && flotilla lint . --clusters clusters.yaml`,
		Args:              exactArgs("DIR"),
		ValidArgsFunction: completeDirectories,
		RunE:              func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args[0]) },
	}
	flags.add(cmd)
	return cmd
}

func (f *lintFlags) add(cmd *cobra.Command) {
	f.renderingFlags.add(cmd, "a label of all example clusters", "end with 1 where there is a warning")
	f.clusters.add(cmd, "clusters", "YAML `file` with Clusters to render for beside the examples, each with the version that its agent reported unless --kube-version is set")
	cmd.Flags().Int64Var(&f.maxBytes, "git-max-bundles-size", bundle.DefaultMaxBytes, "how many bytes the files of all bundles may have together, as the hub is told; 0 is no bound")
	_ = cmd.RegisterFlagCompletionFunc("git-max-bundles-size", cobra.NoFileCompletions)
	f.format.add(cmd)
}

func (f *lintFlags) run(cmd *cobra.Command, name string) error {
	report, err := f.look(cmd, name)
	if err := interrupted(cmd.Context()); err != nil {
		return err
	}
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
	given, err := f.clusters.read()
	if err != nil {
		return nil, err
	}
	w, err := f.open(name, "")
	if err != nil {
		return nil, err
	}
	defer w.close()
	w.scan.MaxBytes = f.maxBytes
	in := lint.Input{
		Tree: w.tree, Scan: w.scan, Labels: f.labels, Offers: w.offers, Renderer: w.pool,
		ClustersFile: f.clusters.name, Bring: f.charts.bring, Progress: newProgress(cmd.ErrOrStderr(), time.Now).tell,
	}
	for i := range given {
		offers := w.offers
		if version := given[i].Status.Agent.KubernetesVersion; version != "" && f.kubeVersion == "" {
			if offers, err = capabilities(version, f.apis); err != nil {
				return nil, fmt.Errorf("the version that cluster %s reports: %w", given[i].Name, err)
			}
		}
		in.Clusters = append(in.Clusters, pipeline.Cluster{Cluster: clusterOf(&given[i]), Capabilities: offers})
	}
	report, err := lint.Run(cmd.Context(), in)
	if err != nil {
		return nil, err
	}
	for i := range report.Problems {
		if p := &report.Problems[i]; p.File != f.clusters.name {
			p.File = w.shown(p.File)
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
