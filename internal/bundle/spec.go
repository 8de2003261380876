package bundle

import (
	"fmt"
	"slices"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
	"github.com/flotilla-sh/flotilla/pkg/fleetyaml"
)

// spec returns the bundle's spec: that of fleet.yaml under the settings of the
// GitRepo.
func (in *Input) spec(config *fleetyaml.FleetYAML) fleet.BundleSpec {
	spec := config.BundleSpec
	customizations := slices.Concat(config.Targets, config.TargetCustomizations)
	targets := in.targets(config)

	spec.Targets = slices.Concat(customizations, bundleTargets(targets))
	nameTargets(spec.Targets)
	spec.TargetRestrictions = nil
	for i, t := range targets {
		t.Name = spec.Targets[len(customizations)+i].Name
		spec.TargetRestrictions = append(spec.TargetRestrictions, fleet.BundleTargetRestriction(t))
	}
	in.override(&spec)
	return spec
}

// targets returns where the bundle goes.
func (in *Input) targets(config *fleetyaml.FleetYAML) []fleet.GitTarget {
	switch {
	case len(config.OverrideTargets) > 0:
		return config.OverrideTargets
	case len(in.Targets) > 0:
		return in.Targets
	}
	return []fleet.GitTarget{{Name: "default", ClusterGroup: "default"}}
}

func bundleTargets(targets []fleet.GitTarget) []fleet.BundleTarget {
	out := make([]fleet.BundleTarget, len(targets))
	for i, t := range targets {
		out[i] = fleet.BundleTarget{
			Name: t.Name, ClusterName: t.ClusterName, ClusterSelector: t.ClusterSelector,
			ClusterGroup: t.ClusterGroup, ClusterGroupSelector: t.ClusterGroupSelector,
		}
	}
	return out
}

func nameTargets(targets []fleet.BundleTarget) {
	for i := range targets {
		if targets[i].Name == "" {
			targets[i].Name = fmt.Sprintf("target%03d", i)
		}
	}
}

// override lays what the GitRepo says over the spec.
func (in *Input) override(spec *fleet.BundleSpec) {
	if in.ServiceAccount != "" {
		spec.ServiceAccount = in.ServiceAccount
	}
	if in.TargetNamespace != "" {
		spec.TargetNamespace = in.TargetNamespace
	}
	for i := range spec.Targets {
		// A customization must not get round what the GitRepo imposes.
		if in.ServiceAccount != "" {
			spec.Targets[i].ServiceAccount = ""
		}
		if in.TargetNamespace != "" {
			spec.Targets[i].TargetNamespace = in.TargetNamespace
		}
		// Nor hide that the GitRepo asks for all to be deployed again.
		if in.ForceSyncGeneration > 0 {
			spec.Targets[i].ForceSyncGeneration = 0
		}
	}
	spec.Paused = spec.Paused || in.Paused
	spec.KeepResources = spec.KeepResources || in.KeepResources
	spec.DeleteNamespace = spec.DeleteNamespace || in.DeleteNamespace
	if in.CorrectDrift != nil && in.CorrectDrift.Enabled {
		spec.CorrectDrift = in.CorrectDrift
	}
	if in.ForceSyncGeneration > 0 {
		spec.ForceSyncGeneration = in.ForceSyncGeneration
	}
}
