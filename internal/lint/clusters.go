package lint

import (
	"fmt"

	"github.com/flotilla-sh/flotilla/internal/names"
	"github.com/flotilla-sh/flotilla/internal/pipeline"
)

// sharing says which clusters get one namespace on the hub: it is for one of
// them alone.
func sharing(clusters []pipeline.Cluster) []string {
	var out []string
	first := make(map[string]string, len(clusters))
	for i := range clusters {
		c := &clusters[i]
		name, namespace := c.Namespace+"/"+c.Name, names.ClusterNamespace(c.Namespace, c.Name)
		switch other := first[namespace]; other {
		case "":
			first[namespace] = name
		case name:
		default:
			out = append(out, fmt.Sprintf("the Clusters %s and %s get the same namespace on the hub, %s, which takes the first of them alone: give one another name", other, name, namespace))
		}
	}
	return out
}
