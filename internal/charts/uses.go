package charts

import (
	"cmp"
	"errors"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source/chart"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// maxUses bounds the different charts of one bundle.
const maxUses = 32

var errUses = fault.Stall(chart.ReasonInvalid, errors.New("the targets name more than 32 different charts or versions: make several bundles of it"))

// usesOf returns the charts that the options of a bundle can lead to, whatever
// the clusters: those of the bundle, and those with a target laid over it. With
// AllMatches any of the targets may be laid over each other.
func usesOf(spec *fleet.BundleSpec) ([]use, error) {
	base := over(use{}, spec.Helm)
	all := map[use]bool{base: true}
	order := []use{base}
	for i := range spec.Targets {
		t := &spec.Targets[i]
		if t.Helm == nil || t.DoNotDeploy {
			continue
		}
		below := []use{base}
		if spec.TargetCustomizationMode == fleet.AllMatches {
			below = order
		}
		for _, u := range below {
			if next := over(u, t.Helm); !all[next] {
				all[next] = true
				order = append(order, next)
			}
		}
		if len(order) > maxUses {
			return nil, errUses
		}
	}
	return complete(order), nil
}

// complete leaves out what names no chart yet, where others do: a repository
// for all, and the chart in each target.
func complete(all []use) []use {
	if len(all) == 1 {
		return all
	}
	var out []use
	for _, u := range all {
		if u.repo == "" || u.chart != "" {
			out = append(out, u)
		}
	}
	if len(out) == 0 {
		return all
	}
	return out
}

func over(u use, helm *fleet.HelmOptions) use {
	if helm == nil {
		return u
	}
	return use{
		repo: cmp.Or(helm.Repo, u.repo), chart: cmp.Or(helm.Chart, u.chart), version: cmp.Or(helm.Version, u.version),
		noDependencies: u.noDependencies || helm.DisableDependencyUpdate,
	}
}
