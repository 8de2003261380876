package cli

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/fault"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// applyFlags are the flags of "apply".
type applyFlags struct {
	hubFlags
	sourceFlags
	output          string
	labels          map[string]string
	targetsFile     string
	targetNamespace string
	serviceAccount  string
	commit          string
	paused          bool
	keepResources   bool
	deleteNamespace bool
	drift           fleet.CorrectDrift
	syncGeneration  int64
	registrySecret  string
	compress        bool
	strict          bool
}

func newApply(g *globals) *cobra.Command {
	flags := &applyFlags{hubFlags: hubFlags{globals: g}}
	cmd := &cobra.Command{
		Use:   "apply NAME [DIR...]",
		Short: "Make Bundles of directories, without a GitRepo",
		Long: `Makes Bundles of directories, with their files in them, and creates or updates
them on the hub; with --output they are only written, and no cluster is asked.
The names are those that a GitRepo called NAME would give: call it in the root
of the repository, with directories below it. Without DIR it is the current
directory. Without --targets-file the Bundles go to the cluster group "default".

Charts from elsewhere are fetched and become part of the Bundles.

Nothing is applied or written while one of the directories has an error.
Bundles that are no longer among the directories stay.`,
		Example: `  flotilla apply web examples/helm -n fleet-default --targets-file targets.yaml
  flotilla apply web examples/helm -n fleet-default --targets-file targets.yaml --commit $(git rev-parse HEAD)
  flotilla apply web -b apps/web:prod.yaml -b apps/web:dev.yaml
  flotilla apply -o - web examples/helm > bundles.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%q takes a NAME and directories", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args[0], args[1:]) },
	}
	flags.add(cmd)
	return cmd
}

func (f *applyFlags) add(cmd *cobra.Command) {
	f.hubFlags.add(cmd, "fleet-local")
	set := cmd.Flags()
	set.StringVarP(&f.output, "output", "o", "", "file to write the Bundles to instead of applying them; - is stdout")
	set.StringToStringVarP(&f.labels, "label", "l", nil, "a label of the Bundles as `key=value`; may be repeated")
	set.StringVar(&f.targetsFile, "targets-file", "", "YAML file with targets, as in a GitRepo")
	set.StringVar(&f.targetNamespace, "target-namespace", "", "force all objects into this namespace")
	set.StringVarP(&f.serviceAccount, "service-account", "a", "", "account that agents act as")
	set.StringVar(&f.commit, "commit", "", "commit to label the Bundles with (default: $COMMIT)")
	set.BoolVar(&f.paused, "paused", false, "do not deploy the Bundles yet")
	set.BoolVar(&f.keepResources, "keep-resources", false, "leave objects on clusters when the Bundles go")
	set.BoolVar(&f.deleteNamespace, "delete-namespace", false, "delete the namespaces that were made for the Bundles when the Bundles go")
	set.BoolVar(&f.drift.Enabled, "correct-drift", false, "put objects back that are changed on a cluster")
	set.BoolVar(&f.drift.Force, "correct-drift-force", false, "with --correct-drift: delete and make anew what refuses the change")
	set.BoolVar(&f.drift.KeepFailHistory, "correct-drift-keep-fail-history", false, "accepted for scripts; there is no history")
	set.Int64Var(&f.syncGeneration, "sync-generation", 0, "deploy all again where the number is a new one")
	set.StringVar(&f.registrySecret, "oci-registry-secret", "", "Secret with the registry to keep contents in")
	set.BoolVarP(&f.compress, "compress", "c", false, "compress all files")
	set.BoolVar(&f.strict, "strict", false, "make errors of warnings")
	set.Int("bundle-creation-max-concurrency", 0, "accepted for scripts; Bundles are made one after the other")
	set.Bool("imagescan-enabled", false, "accepted for scripts; images are not scanned")
	f.sourceFlags.add(cmd)
	for _, name := range []string{"label", "target-namespace", "service-account", "commit", "sync-generation", "oci-registry-secret", "bundle-creation-max-concurrency"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

func (f *applyFlags) run(cmd *cobra.Command, name string, dirs []string) error {
	in, err := f.input(name)
	if err != nil {
		return err
	}
	bundles, warnings, err := f.bundles(cmd.Context(), in, dirs)
	for _, w := range warnings {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", w)
	}
	if err != nil {
		return err
	}
	if f.output == "" {
		return f.apply(cmd, bundles)
	}
	text, err := bundlesText(bundles)
	if err != nil {
		return err
	}
	if f.output == "-" {
		_, err = cmd.OutOrStdout().Write(text)
		return err
	}
	return os.WriteFile(f.output, text, 0o600) // values may be secret
}

func (f *applyFlags) input(name string) (bundle.Input, error) {
	in := bundle.Input{
		RepoName: name, Labels: f.labels, ServiceAccount: f.serviceAccount, TargetNamespace: f.targetNamespace,
		Paused: f.paused, KeepResources: f.keepResources, DeleteNamespace: f.deleteNamespace,
		ForceSyncGeneration: f.syncGeneration, Strict: f.strict,
	}
	switch {
	case f.drift.Enabled:
		in.CorrectDrift = &f.drift
	case f.drift != fleet.CorrectDrift{}:
		return in, usagef("--correct-drift-force and --correct-drift-keep-fail-history say how: add --correct-drift")
	}
	if f.commit == "" {
		f.commit = os.Getenv("COMMIT")
	}
	var err error
	if f.targetsFile != "" {
		in.Targets, err = readTargets(f.targetsFile)
	}
	return in, err
}

// bundles makes the Bundles of all directories. Its error is of everything that
// is wrong with any of them.
func (f *applyFlags) bundles(ctx context.Context, in bundle.Input, names []string) (bundles []*fleet.Bundle, warnings []fault.Note, err error) {
	if len(names) == 0 {
		names = []string{"."}
	}
	if err := f.check(names); err != nil {
		return nil, nil, err
	}
	dirs, err := openDirectories(names)
	if err != nil {
		return nil, nil, err
	}
	in.Paths, in.Bundles = dirs.paths, f.entries(dirs)
	drafts, err := bundle.Scan(dirs.tree, in)
	errs := several{err, f.charts.bring(ctx, dirs.tree, drafts)}
	if err := interrupted(ctx); err != nil {
		return nil, nil, err
	}
	for i := range drafts {
		warnings = append(warnings, drafts[i].Warnings...)
		if drafts[i].Err != nil {
			errs = append(errs, drafts[i].Err)
			continue
		}
		made, err := f.bundle(&drafts[i])
		bundles, errs = append(bundles, made), append(errs, err)
	}
	return bundles, warnings, errs.orNil()
}

// targetsFile is what a file of targets holds.
type targetsFile struct {
	Targets []fleet.GitTarget `json:"targets"`
	// TargetRestrictions may repeat the targets, as files for Fleet do.
	TargetRestrictions []fleet.GitTarget `json:"targetRestrictions,omitempty"`
}

func readTargets(name string) ([]fleet.GitTarget, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--targets-file: %w", err)
	}
	var file targetsFile
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		return nil, fmt.Errorf("--targets-file %s: %s; it holds \"targets:\" with a list as in a GitRepo", name, strings.TrimPrefix(err.Error(), "error unmarshaling JSON: "))
	}
	if len(file.Targets) == 0 {
		return nil, fmt.Errorf("--targets-file %s has no targets", name)
	}
	if len(file.TargetRestrictions) > 0 && !reflect.DeepEqual(file.Targets, file.TargetRestrictions) {
		return nil, fmt.Errorf("--targets-file %s: targetRestrictions differ from targets: leave them out, they are made of the targets", name)
	}
	return file.Targets, nil
}
