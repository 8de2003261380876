package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/effect"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/render/worker"
	"github.com/flotilla-sh/flotilla/internal/target"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// renderFlags are the flags of "render".
type renderFlags struct {
	labels      map[string]string
	annotations map[string]string
	groups      []string
	name        string
	namespace   string
	repo        string
	kubeVersion string
	apis        []string
	timeout     time.Duration
	strict      bool
	format      objectFormat
	charts      chartFlags
}

func newRender() *cobra.Command {
	flags := &renderFlags{}
	cmd := &cobra.Command{
		Use:   "render DIR",
		Short: "Print the objects that a cluster would get from a directory",
		Long: `Prints the objects that a cluster with the given labels would get from the
bundles in a directory, in the order in which they are applied. No cluster is
asked; charts from elsewhere are fetched. Targets of a GitRepo are left out of account: every bundle is rendered
whose own fleet.yaml lets it go to such a cluster.

What is worth knowing goes to stderr. Where a bundle cannot be rendered the
others are printed all the same, and the exit code is 1.`,
		Example: `  flotilla render examples/helm -l env=prod -l region=eu
  flotilla render . --gitrepo platform --kube-version v1.36.3 -o json
  flotilla render bundles/monitoring --api monitoring.coreos.com/v1/ServiceMonitor --strict`,
		Args: exactArgs("DIR"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args[0]) },
	}
	flags.add(cmd)
	return cmd
}

func (f *renderFlags) add(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringToStringVarP(&f.labels, "label", "l", nil, "a label of the cluster as `key=value`; may be repeated")
	set.StringToStringVar(&f.annotations, "annotation", nil, "an annotation of the cluster as `key=value`; may be repeated")
	set.StringArrayVar(&f.groups, "group", nil, "a cluster group that the cluster is in; may be repeated")
	set.StringVar(&f.name, "name", "cluster", "name of the cluster")
	set.StringVarP(&f.namespace, "namespace", "n", "fleet-default", "namespace of the cluster")
	set.StringVar(&f.repo, "gitrepo", "", "name of the GitRepo, with which the names of bundles begin (default: none)")
	set.StringVar(&f.kubeVersion, "kube-version", "", "Kubernetes version of the cluster (default "+newestKubernetes()+")")
	set.StringArrayVar(&f.apis, "api", nil, "a kind that the cluster serves beside Kubernetes' own, as group/version/Kind, with :Cluster after a kind without namespaces; may be repeated")
	set.DurationVar(&f.timeout, "timeout", time.Minute, "how long one bundle may take")
	set.BoolVar(&f.strict, "strict", false, "make errors of warnings")
	f.format.add(cmd)
	f.charts.add(set)
}

func (f *renderFlags) run(cmd *cobra.Command, name string) error {
	offers, err := capabilities(f.kubeVersion, f.apis)
	if err != nil {
		return err
	}
	dirs, err := openDirectories([]string{name})
	if err != nil {
		return err
	}
	in := dirs.scanInput(f.repo, name)
	in.Strict = f.strict
	drafts, scanErr := bundle.Scan(dirs.tree, in)
	chartsErr := f.charts.bring(cmd.Context(), dirs.tree, drafts)
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program to start renders with: %w", err)
	}
	pool := worker.NewPool(worker.Options{Executable: self, Deadline: f.timeout})
	defer pool.Close()
	r := &rendering{renderFlags: f, renderer: pool, offers: offers, commit: dirs.tree.Commit}
	if len(dirs.paths) == 0 {
		r.prefix = filepath.ToSlash(name)
	}
	rendered, err := r.all(cmd.Context(), drafts)
	if err != nil {
		return fmt.Errorf("interrupted: %w", err)
	}
	errs := several{scanErr, chartsErr}
	for i := range rendered {
		errs = append(errs, rendered[i].tell(cmd.ErrOrStderr(), f.strict))
	}
	return append(errs, f.format.write(cmd.OutOrStdout(), rendered)).orNil()
}

// scanInput looks for the bundles of a directory, as a GitRepo called repo
// would that targets every cluster.
func (d *directories) scanInput(repo, name string) bundle.Input {
	in := bundle.Input{
		RepoName: repo, Paths: d.paths,
		Targets: []fleet.GitTarget{{Name: "this", ClusterSelector: &metav1.LabelSelector{}}},
	}
	if repo == "" && (len(d.paths) == 0 || d.paths[0] == ".") {
		in.RepoName = baseName(name)
	}
	return in
}

func (f *renderFlags) cluster() target.Cluster {
	c := target.Cluster{
		Namespace: f.namespace, Name: f.name, DeploymentNamespace: f.namespace,
		Labels: f.labels, Annotations: f.annotations,
	}
	for _, group := range f.groups {
		c.Groups = append(c.Groups, target.Group{Name: group})
	}
	return c
}

// rendering renders drafts for one cluster.
type rendering struct {
	*renderFlags
	renderer render.Renderer
	offers   render.Capabilities
	commit   string
	// prefix is what the user typed for the root, where it is not the current
	// directory.
	prefix string
}

// renderedBundle is what became of one draft.
type renderedBundle struct {
	name, path string
	objects    []render.Object
	warnings   []fault.Note
	notes      []string
	err        error
}

func (r *rendering) all(ctx context.Context, drafts []bundle.Draft) ([]renderedBundle, error) {
	out := make([]renderedBundle, len(drafts))
	group, ctx := errgroup.WithContext(ctx)
	for i := range drafts {
		group.Go(func() error {
			out[i] = r.one(ctx, &drafts[i])
			return ctx.Err()
		})
	}
	return out, group.Wait()
}

func (r *rendering) one(ctx context.Context, draft *bundle.Draft) renderedBundle {
	out := renderedBundle{name: draft.Name, path: path.Join(r.prefix, draft.Path), warnings: draft.Warnings, err: draft.Err}
	if out.err != nil {
		return out
	}
	assigned, err := target.Assign(target.Input{
		Bundle:   target.Bundle{Namespace: r.namespace, Name: draft.Name, Labels: draft.Labels, Spec: draft.Spec},
		Clusters: []target.Cluster{r.cluster()},
	})
	switch {
	case err != nil:
		out.err = err
	case len(assigned) == 0:
		out.notes = append(out.notes, "does not go to a cluster with these labels")
	case assigned[0].Err != nil:
		out.err = fmt.Errorf("%w (labels are given with -l key=value)", assigned[0].Err)
	default:
		r.fill(ctx, &out, draft, &assigned[0])
	}
	return out
}

func (r *rendering) fill(ctx context.Context, out *renderedBundle, draft *bundle.Draft, assigned *target.Assignment) {
	options := assigned.Options
	if why := effect.Holds(options); why != "" {
		out.notes = append(out.notes, why)
	}
	if fields := effect.OfBundle(&draft.Spec); len(fields) > 0 {
		out.notes = append(out.notes, effect.Condition(fields).Message)
	}
	result, err := r.renderer.Render(ctx, render.Request{
		Files: draft.Files, SourceDigest: draft.SourceDigest, Bundle: draft.Name, Commit: r.commit,
		Options: *options, Capabilities: r.offers, Cluster: assigned.Cluster.Templating(),
	})
	if err != nil {
		out.err = err
		return
	}
	out.objects = result.Objects
	out.warnings = append(out.warnings, result.Warnings...)
	if result.NeedsCluster != "" {
		out.warnings = append(out.warnings, fault.Note{Message: "only its cluster can render this, the objects are those of an empty one: " + result.NeedsCluster})
	}
	if len(result.UnknownScope) > 0 {
		out.notes = append(out.notes, "the cluster decides whether these kinds have a namespace (say so with --api): "+strings.Join(result.UnknownScope, ", "))
	}
}

// tell writes what is worth knowing and returns the error of the bundle.
func (b *renderedBundle) tell(w io.Writer, strict bool) error {
	err := b.err
	for _, warning := range b.warnings {
		if strict && b.err == nil {
			err = errors.Join(err, errors.New(warning.String()))
			continue
		}
		fmt.Fprintf(w, "warning: %s\n", b.about(warning.String()))
	}
	for _, text := range b.notes {
		fmt.Fprintf(w, "note: %s\n", b.about(text))
	}
	if err == nil {
		return nil
	}
	return errors.New(b.about(err.Error()))
}

// about puts the bundle before a text.
func (b *renderedBundle) about(text string) string {
	return fmt.Sprintf("bundle %s: %s", b.name, strings.ReplaceAll(text, "\n", "\n  "))
}
