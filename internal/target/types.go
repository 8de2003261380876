package target

import (
	"github.com/flotilla-sh/flotilla/internal/templating"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Input is a bundle and the clusters that it might go to.
type Input struct {
	// Bundle is the bundle, with its values filled in.
	Bundle Bundle
	// Clusters are those of the bundle's namespace and those that a
	// BundleNamespaceMapping opens to it.
	Clusters []Cluster
}

// Bundle is what targeting needs to know of a bundle.
type Bundle struct {
	// Namespace and Name identify the bundle.
	Namespace, Name string
	// Labels are the bundle's labels.
	Labels map[string]string
	// Spec is the bundle's spec, with its values filled in.
	Spec fleet.BundleSpec
}

// Cluster is what targeting needs to know of a cluster.
type Cluster struct {
	// Namespace and Name identify the Cluster object.
	Namespace, Name string
	// DeploymentNamespace is the namespace on the hub that holds the cluster's
	// deployments.
	DeploymentNamespace string
	// Labels and Annotations are those of the Cluster object.
	Labels, Annotations map[string]string
	// TemplateValues are .ClusterValues in templates.
	TemplateValues map[string]any
	// Groups are the cluster groups that the cluster is in.
	Groups []Group
	// Paused clusters get nothing new.
	Paused bool
}

// ID returns namespace/name.
func (c *Cluster) ID() string { return c.Namespace + "/" + c.Name }

// ClusterError is what is wrong with one cluster, and may be with others too.
type ClusterError struct {
	// Cluster is its ID.
	Cluster string
	Err     error
}

// Error names the cluster.
func (e *ClusterError) Error() string { return "cluster " + e.Cluster + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *ClusterError) Unwrap() error { return e.Err }

// Wrong makes an error one of the cluster.
func (c *Cluster) Wrong(err error) error { return &ClusterError{Cluster: c.ID(), Err: err} }

// Templating is what templates know of the cluster.
func (c *Cluster) Templating() *templating.Cluster {
	return &templating.Cluster{
		Namespace: c.Namespace, Name: c.Name, Labels: c.Labels, Annotations: c.Annotations, Values: c.TemplateValues,
	}
}

// Group is a cluster group.
type Group struct {
	// Name is the group's name.
	Name string
	// Labels are the group's labels.
	Labels map[string]string
}

// Assignment says that a cluster gets the bundle.
type Assignment struct {
	// Cluster is the cluster; it points into Input.Clusters.
	Cluster *Cluster
	// Target is the name of the target that selected the cluster.
	Target string
	// Customizations are the names of the customizations that were merged.
	Customizations []string
	// Options are merged and templated; nil where Err is set. Clusters with
	// equal options may share them.
	Options *fleet.BundleDeploymentOptions
	// Paused is set where the bundle or the cluster is paused.
	Paused bool
	// Err is why this cluster cannot get the bundle. What the cluster has stays
	// as it is, and other clusters go on.
	Err error
}
