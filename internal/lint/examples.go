package lint

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/pipeline"
	"github.com/flotilla-sh/flotilla/internal/target"
	"github.com/flotilla-sh/flotilla/internal/templating"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// namespace is where the examples live.
	namespace = "fleet-default"
	// made is the value of what is made up.
	made = "example"
	// What templates know of a cluster.
	clusterLabels, clusterAnnotations, clusterValues = "ClusterLabels", "ClusterAnnotations", "ClusterValues"
)

// clustersOf returns the clusters to look at: those that are given, one without
// anything, and one for each target of a bundle, that it selects.
func clustersOf(drafts []bundle.Draft, given []pipeline.Cluster, labels map[string]string) []target.Cluster {
	var all []target.Cluster
	for i := range given {
		all = append(all, given[i].Cluster)
	}
	add := func(c target.Cluster) {
		c.Namespace = namespace
		c.Labels = merged(labels, c.Labels)
		same := func(other target.Cluster) bool {
			return reflect.DeepEqual(other.Labels, c.Labels) && reflect.DeepEqual(other.Groups, c.Groups) && (c.Name == "" || other.Name == c.Name)
		}
		if slices.ContainsFunc(all, same) {
			return
		}
		if c.Name == "" {
			c.Name = fmt.Sprintf("%s-%d", made, len(all)+1)
		}
		all = append(all, c)
	}
	add(target.Cluster{Name: made})
	for i := range drafts {
		for _, t := range drafts[i].Spec.Targets {
			add(selectedBy(&t))
		}
	}
	for i := range all {
		all[i].DeploymentNamespace = fmt.Sprintf("%s-%d", made, i)
	}
	return all
}

func merged(under, over map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, under)
	maps.Copy(out, over)
	return out
}

// selectedBy makes a cluster that a target selects.
func selectedBy(t *fleet.BundleTarget) target.Cluster {
	c := target.Cluster{Name: t.ClusterName, Labels: satisfying(t.ClusterSelector)}
	if t.ClusterGroup != "" || t.ClusterGroupSelector != nil {
		c.Groups = []target.Group{{Name: cmp.Or(t.ClusterGroup, made), Labels: satisfying(t.ClusterGroupSelector)}}
	}
	return c
}

// satisfying returns labels that a selector selects, where there are any.
func satisfying(s *metav1.LabelSelector) map[string]string {
	out := map[string]string{}
	if s == nil {
		return out
	}
	maps.Copy(out, s.MatchLabels)
	for _, e := range s.MatchExpressions {
		_, set := out[e.Key]
		switch {
		case set:
		case e.Operator == metav1.LabelSelectorOpIn && len(e.Values) > 0:
			out[e.Key] = e.Values[0]
		case e.Operator == metav1.LabelSelectorOpExists:
			out[e.Key] = made
		}
	}
	return out
}

// copies lets each bundle have its own idea of the examples.
func copies(clusters []target.Cluster) []target.Cluster {
	out := slices.Clone(clusters)
	for i := range out {
		out[i].Labels, out[i].Annotations = maps.Clone(out[i].Labels), maps.Clone(out[i].Annotations)
	}
	return out
}

// makeUp gives clusters the labels and annotations that templates of the values
// did not find, and tells whether there were any.
func makeUp(clusters []target.Cluster, outcomes []pipeline.Outcome) bool {
	changed := false
	for i := range outcomes {
		at := slices.IndexFunc(clusters, func(c target.Cluster) bool {
			return c.DeploymentNamespace == outcomes[i].Desired.Namespace
		})
		if at < 0 {
			continue
		}
		for _, missing := range templating.Missing(outcomes[i].Err) {
			switch missing.Root {
			case clusterLabels:
				clusters[at].Labels = merged(clusters[at].Labels, map[string]string{missing.Key: made})
			case clusterAnnotations:
				clusters[at].Annotations = merged(clusters[at].Annotations, map[string]string{missing.Key: made})
			default:
				continue
			}
			changed = true
		}
	}
	return changed
}
