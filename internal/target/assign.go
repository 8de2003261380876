package target

import (
	"cmp"
	"slices"

	"github.com/flotilla-sh/flotilla/internal/templating"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Assign returns who gets the bundle, sorted by cluster. Its error is for the
// bundle as a whole; what is wrong for one cluster is on its assignment.
func Assign(in Input) ([]Assignment, error) {
	m, err := NewMatcher(in.Bundle)
	if err != nil {
		return nil, err
	}
	return m.Assign(in.Clusters), nil
}

// Assign returns which of clusters get the bundle, sorted by cluster.
func (m *Matcher) Assign(clusters []Cluster) []Assignment {
	sorted := make([]*Cluster, len(clusters))
	for i := range clusters {
		sorted[i] = &clusters[i]
	}
	slices.SortFunc(sorted, func(a, b *Cluster) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	plans, total := map[string]*plan{}, &templating.Total{}
	var out []Assignment
	for _, cluster := range sorted {
		chosen, ok := m.choose(cluster)
		if !ok {
			continue
		}
		p := plans[chosen.key()]
		if p == nil {
			p = newPlan(m.merged(chosen), total)
			plans[chosen.key()] = p
		}
		out = append(out, m.assign(cluster, chosen, p))
	}
	return out
}

func (m *Matcher) assign(cluster *Cluster, chosen selection, p *plan) Assignment {
	a := Assignment{
		Cluster: cluster,
		Target:  m.bundle.Spec.Targets[chosen.target].Name,
		Paused:  cluster.Paused || m.bundle.Spec.Paused,
	}
	for _, i := range chosen.customs {
		a.Customizations = append(a.Customizations, m.bundle.Spec.Targets[i].Name)
	}
	a.Options, a.Err = p.optionsFor(cluster)
	return a
}

// merged returns the options that a selection leads to, before templates.
func (m *Matcher) merged(s selection) fleet.BundleDeploymentOptions {
	options := m.bundle.Spec.BundleDeploymentOptions
	if len(s.customs) == 0 {
		return Merge(options, m.bundle.Spec.Targets[s.target].BundleDeploymentOptions)
	}
	for _, i := range s.customs {
		options = Merge(options, m.bundle.Spec.Targets[i].BundleDeploymentOptions)
	}
	return options
}
