package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/flotilla-sh/flotilla/internal/target"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// clusterOrList is a Cluster, or a List of them as kubectl writes it.
type clusterOrList struct {
	fleet.Cluster `json:",inline"`
	Items         []fleet.Cluster `json:"items"`
}

// readClusters reads the Clusters in a YAML file, for what templates and
// selectors know of them; none where there is no file.
func readClusters(name string) ([]target.Cluster, error) {
	if name == "" {
		return nil, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("--clusters: %w", err)
	}
	defer func() { _ = file.Close() }()
	var found []target.Cluster
	const buffer = 4096
	for decoder := yaml.NewYAMLOrJSONDecoder(file, buffer); ; {
		var read clusterOrList
		if err := decoder.Decode(&read); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("--clusters %s: %w", name, err)
		}
		for _, c := range append(read.Items, read.Cluster) {
			if c.Kind == "Cluster" && c.Name != "" {
				found = append(found, clusterOf(&c))
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("--clusters %s holds no Cluster: write one with kubectl get clusters.fleet.cattle.io -o yaml", name)
	}
	return found, nil
}

func clusterOf(c *fleet.Cluster) target.Cluster {
	out := target.Cluster{Namespace: c.Namespace, Name: c.Name, DeploymentNamespace: c.Namespace + "-" + c.Name, Labels: c.Labels, Annotations: c.Annotations}
	if c.Spec.TemplateValues != nil {
		out.TemplateValues = c.Spec.TemplateValues.Data
	}
	return out
}
