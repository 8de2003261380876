package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/flotilla-sh/flotilla/internal/target"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// clusterOrList is a Cluster, or a List of them as kubectl writes it.
type clusterOrList struct {
	fleet.Cluster `json:",inline"`
	Items         []fleet.Cluster `json:"items"`
}

// clusterFile is a flag that names a YAML file with Clusters.
type clusterFile struct{ flag, name string }

func (f *clusterFile) add(cmd *cobra.Command, flag, usage string) {
	f.flag = flag
	cmd.Flags().StringVar(&f.name, flag, "", usage)
	_ = cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return []cobra.Completion{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
	})
}

// read returns the Clusters of the file; none where there is no file.
func (f *clusterFile) read() ([]fleet.Cluster, error) {
	if f.name == "" {
		return nil, nil
	}
	file, err := os.Open(f.name)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", f.flag, err)
	}
	defer func() { _ = file.Close() }()
	var found []fleet.Cluster
	const buffer = 4096
	for decoder := yaml.NewYAMLOrJSONDecoder(file, buffer); ; {
		var read clusterOrList
		if err := decoder.Decode(&read); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("--%s %s: %w", f.flag, f.name, err)
		}
		for _, c := range append(read.Items, read.Cluster) {
			if c.Kind == "Cluster" && c.Name != "" {
				found = append(found, c)
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("--%s %s holds no Cluster: write one with kubectl get clusters.fleet.cattle.io -o yaml", f.flag, f.name)
	}
	return found, nil
}

// one returns the Cluster of a name, which may be empty where there is only
// one; nil where there is no file.
func (f *clusterFile) one(namespace, name string) (*fleet.Cluster, error) {
	all, err := f.read()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	var names []string
	for i := range all {
		names = append(names, all[i].Namespace+"/"+all[i].Name)
	}
	fits := slices.DeleteFunc(all, func(c fleet.Cluster) bool {
		return namespace != "" && c.Namespace != namespace || name != "" && c.Name != name
	})
	const most = 8
	if len(names) > most {
		names = append(names[:most], "…")
	}
	list := strings.Join(names, ", ")
	switch {
	case len(fits) == 0:
		return nil, fmt.Errorf("--%s %s holds no Cluster %s; it has %s", f.flag, f.name, strings.TrimPrefix(namespace+"/"+name, "/"), list)
	case len(fits) > 1:
		return nil, usagef("--%s %s holds %d Clusters: choose one with --cluster-name, and -n where it is in several namespaces: %s", f.flag, f.name, len(fits), list)
	}
	return &fits[0], nil
}

// clusterOf is what templates and selectors know of a Cluster.
func clusterOf(c *fleet.Cluster) target.Cluster {
	out := target.Cluster{Namespace: c.Namespace, Name: c.Name, DeploymentNamespace: c.Namespace + "-" + c.Name, Labels: c.Labels, Annotations: c.Annotations}
	if c.Spec.TemplateValues != nil {
		out.TemplateValues = c.Spec.TemplateValues.Data
	}
	return out
}
