package cli

import (
	"cmp"
	"maps"

	"github.com/spf13/cobra"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/pipeline"
	"github.com/flotilla-sh/flotilla/internal/target"
)

// renderFlags are the flags of "render".
type renderFlags struct {
	renderingFlags
	file            clusterFile
	name, namespace string
	annotations     map[string]string
	groups          []string
	format          objectFormat
}

func newRender() *cobra.Command {
	flags := &renderFlags{}
	cmd := &cobra.Command{
		Use:   "render DIR",
		Short: "Print the objects that a cluster would get from a directory",
		Long: `Prints the objects that a cluster would get from the bundles in a directory, in
the order in which they are applied. No cluster is asked; charts from elsewhere
are fetched. Targets of a GitRepo are left out of account: every bundle is
rendered whose own fleet.yaml lets it go to such a cluster.

The cluster is described by flags, or by a Cluster in a file: its labels,
annotations, template values and the version that its agent reported. What flags
say comes on top.

It is done by the code that the hub uses: what that refuses is refused here. What
is worth knowing goes to stderr: warnings, what only the cluster can render (shown
is what an empty one would get, and with --strict it is an error), and what is
copied from the hub and hence not shown. Where a bundle cannot be rendered the
others are printed all the same, and the exit code is 1.`,
		Example: `  flotilla render examples/helm -l env=prod -l region=eu
  flotilla render . --gitrepo platform --kube-version v1.36.3 -o json
  flotilla render . -b apps/web:prod.yaml -b apps/web:dev.yaml
  flotilla render apps/monitoring --api-versions monitoring.coreos.com/v1/ServiceMonitor --strict
  kubectl get clusters.fleet.cattle.io -A -o yaml > clusters.yaml && flotilla render . --cluster clusters.yaml --cluster-name berlin`,
		Args:              exactArgs("DIR"),
		ValidArgsFunction: completeDirectories,
		RunE:              func(cmd *cobra.Command, args []string) error { return flags.run(cmd, args[0]) },
	}
	flags.add(cmd)
	return cmd
}

// What a cluster is called where nobody says.
const defaultCluster, defaultNamespace = "cluster", "fleet-default"

func (f *renderFlags) add(cmd *cobra.Command) {
	f.renderingFlags.add(cmd, "a label of the cluster", "make errors of warnings")
	f.file.add(cmd, "cluster", "YAML `file` with the Cluster to render for")
	f.format.add(cmd)
	set := cmd.Flags()
	set.StringToStringVar(&f.annotations, "annotation", nil, "an annotation of the cluster as `key=value`; may be repeated")
	set.StringArrayVar(&f.groups, "group", nil, "a cluster group that the cluster is in; may be repeated")
	set.StringVar(&f.name, "cluster-name", "", "name of the cluster, which chooses one of those in --cluster (default: "+defaultCluster+", or the only one there)")
	set.StringVarP(&f.namespace, "namespace", "n", "", "namespace of the cluster (default: "+defaultNamespace+", or that in --cluster)")
	for _, name := range []string{"annotation", "group", "cluster-name", "namespace"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

func (f *renderFlags) run(cmd *cobra.Command, name string) error {
	cluster, version, err := f.cluster()
	if err != nil {
		return err
	}
	w, err := f.open(name, version)
	if err != nil {
		return err
	}
	defer w.close()
	w.scan.Strict = f.strict
	drafts, scanErr := bundle.Scan(w.tree, w.scan)
	chartsErr := f.charts.bring(cmd.Context(), w.tree, drafts)
	r := &rendering{work: w, cluster: cluster, stages: pipeline.Alone(w.pool)}
	rendered := r.all(cmd.Context(), drafts)
	if err := interrupted(cmd.Context()); err != nil {
		return err
	}
	errs := several{scanErr, chartsErr}
	for i := range rendered {
		errs = append(errs, rendered[i].tell(cmd.ErrOrStderr(), f.strict))
	}
	return append(errs, f.format.write(cmd.OutOrStdout(), rendered)).orNil()
}

// cluster returns the cluster to render for, and its Kubernetes version where
// it is known.
func (f *renderFlags) cluster() (target.Cluster, string, error) {
	given, err := f.file.one(f.namespace, f.name)
	if err != nil {
		return target.Cluster{}, "", err
	}
	c, version := target.Cluster{Namespace: cmp.Or(f.namespace, defaultNamespace), Name: cmp.Or(f.name, defaultCluster)}, ""
	if given != nil {
		c, version = clusterOf(given), given.Status.Agent.KubernetesVersion
	}
	c.DeploymentNamespace = c.Namespace
	c.Labels, c.Annotations = over(c.Labels, f.labels), over(c.Annotations, f.annotations)
	for _, group := range f.groups {
		c.Groups = append(c.Groups, target.Group{Name: group})
	}
	return c, version, nil
}

func over(under, with map[string]string) map[string]string {
	out := maps.Clone(under)
	if out == nil {
		return with
	}
	maps.Copy(out, with)
	return out
}
