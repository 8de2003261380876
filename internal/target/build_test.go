package target

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// cluster makes a Cluster of the namespace fleet-default with labels given as
// key, value, key, value.
func cluster(name string, labels ...string) Cluster {
	c := Cluster{Namespace: "fleet-default", Name: name, DeploymentNamespace: "cluster-" + name}
	for i := 0; i+1 < len(labels); i += 2 {
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		c.Labels[labels[i]] = labels[i+1]
	}
	return c
}

func inGroups(c Cluster, groups ...Group) Cluster {
	c.Groups = groups
	return c
}

func selector(labels ...string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	for i := 0; i+1 < len(labels); i += 2 {
		s = metav1.AddLabelToSelector(s, labels[i], labels[i+1])
	}
	return s
}

// helmValues makes options with these values.
func helmValues(values map[string]any) fleet.BundleDeploymentOptions {
	return fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Values: &fleet.GenericMap{Data: values}}}
}

func bundleOf(spec fleet.BundleSpec) Bundle {
	return Bundle{Namespace: "fleet-default", Name: "web", Spec: spec}
}

func assign(t *testing.T, spec fleet.BundleSpec, clusters ...Cluster) []Assignment {
	t.Helper()
	out, err := Assign(Input{Bundle: bundleOf(spec), Clusters: clusters})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// toAll is a spec that goes to every cluster.
func toAll(options fleet.BundleDeploymentOptions) fleet.BundleSpec {
	return fleet.BundleSpec{
		BundleDeploymentOptions: options,
		Targets:                 []fleet.BundleTarget{{Name: "all", ClusterSelector: selector()}},
	}
}
