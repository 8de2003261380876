package cli

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// sourceFlags say which bundles of a directory are meant, and how the charts
// that they need are reached.
type sourceFlags struct {
	driven []string
	charts chartFlags
}

func (f *sourceFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&f.driven, "bundle", "b", nil,
		"one bundle as `base[:options]`, as in bundles of a GitRepo: a directory, and the file in it to read for fleet.yaml; nothing else is looked for; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("bundle", completeDirectories)
	f.charts.add(cmd)
}

// check refuses what the directories cannot mean.
func (f *sourceFlags) check(names []string) error {
	if len(f.driven) > 0 && len(names) > 1 {
		return usagef("--bundle takes directories from one DIR, got %d", len(names))
	}
	return f.charts.check()
}

// entries are the bundles that are named one by one.
func (f *sourceFlags) entries(dirs *directories) []fleet.BundlePath {
	out := make([]fleet.BundlePath, 0, len(f.driven))
	for _, entry := range f.driven {
		base, options := entry, ""
		if at := strings.LastIndexByte(entry, ':'); at >= 0 {
			base, options = entry[:at], entry[at+1:]
		}
		if len(dirs.paths) > 0 {
			base = path.Join(dirs.paths[0], filepath.ToSlash(base))
		}
		out = append(out, fleet.BundlePath{Base: base, Options: options})
	}
	return out
}

// scanInput looks for the bundles of a directory, as a GitRepo called repo
// would that targets every cluster.
func (f *sourceFlags) scanInput(dirs *directories, repo, name string) bundle.Input {
	in := bundle.Input{
		RepoName: repo, Paths: dirs.paths, Bundles: f.entries(dirs),
		Targets: []fleet.GitTarget{{Name: "this", ClusterSelector: &metav1.LabelSelector{}}},
	}
	if repo == "" && (len(dirs.paths) == 0 || dirs.paths[0] == ".") {
		in.RepoName = baseName(name)
	}
	return in
}

// completeDirectories completes the arguments of a command with directories.
func completeDirectories(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}
