package target

import (
	"cmp"
	"maps"
	"slices"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Merge returns base with over on top, and changes neither. Texts and numbers
// of over win where they are set, values are merged key by key, lists are
// joined and switches are on where either is.
//
// A negative timeoutSeconds stays in the result, where it takes back a timeout
// from below; whoever uses the result reads it as 0.
func Merge(base, over fleet.BundleDeploymentOptions) fleet.BundleDeploymentOptions {
	out := base
	out.DefaultNamespace = cmp.Or(over.DefaultNamespace, base.DefaultNamespace)
	out.TargetNamespace = cmp.Or(over.TargetNamespace, base.TargetNamespace)
	out.ServiceAccount = cmp.Or(over.ServiceAccount, base.ServiceAccount)
	out.Render = cmp.Or(over.Render, base.Render)
	out.CreateNamespace = cmp.Or(over.CreateNamespace, base.CreateNamespace)
	out.CorrectDrift = cmp.Or(over.CorrectDrift, base.CorrectDrift)
	if over.ForceSyncGeneration > 0 {
		out.ForceSyncGeneration = over.ForceSyncGeneration
	}

	out.KeepResources = base.KeepResources || over.KeepResources
	out.DeleteNamespace = base.DeleteNamespace || over.DeleteNamespace
	out.TemplateManifests = base.TemplateManifests || over.TemplateManifests
	out.DeleteCRDResources = base.DeleteCRDResources || over.DeleteCRDResources

	out.Kustomize = mergeWith(base.Kustomize, over.Kustomize, mergeKustomize)
	out.Helm = mergeWith(base.Helm, over.Helm, mergeHelm)
	out.YAML = mergeWith(base.YAML, over.YAML, mergeYAML)
	out.Diff = mergeWith(base.Diff, over.Diff, mergeDiff)

	out.IgnoreOptions.Conditions = concat(base.IgnoreOptions.Conditions, over.IgnoreOptions.Conditions)
	out.NamespaceLabels = mergeKeys(base.NamespaceLabels, over.NamespaceLabels)
	out.NamespaceAnnotations = mergeKeys(base.NamespaceAnnotations, over.NamespaceAnnotations)
	out.DownstreamResources = concat(base.DownstreamResources, over.DownstreamResources)
	out.Overwrites = concat(base.Overwrites, over.Overwrites)
	// A restriction is never widened by what lies on top of it.
	out.AllowedTargetNamespaceSelector = cmp.Or(base.AllowedTargetNamespaceSelector, over.AllowedTargetNamespaceSelector)
	return out
}

func mergeHelm(base, over fleet.HelmOptions) fleet.HelmOptions {
	return fleet.HelmOptions{
		Chart:          cmp.Or(over.Chart, base.Chart),
		Repo:           cmp.Or(over.Repo, base.Repo),
		Version:        cmp.Or(over.Version, base.Version),
		ReleaseName:    cmp.Or(over.ReleaseName, base.ReleaseName),
		TimeoutSeconds: cmp.Or(over.TimeoutSeconds, base.TimeoutSeconds),
		MaxHistory:     cmp.Or(over.MaxHistory, base.MaxHistory),

		Values:         mergeWith(base.Values, over.Values, mergeGeneric),
		TemplateValues: mergeKeys(base.TemplateValues, over.TemplateValues),
		ValuesFrom:     concat(base.ValuesFrom, over.ValuesFrom),
		ValuesFiles:    concat(base.ValuesFiles, over.ValuesFiles),

		Force:                   base.Force || over.Force,
		TakeOwnership:           base.TakeOwnership || over.TakeOwnership,
		WaitForJobs:             base.WaitForJobs || over.WaitForJobs,
		Atomic:                  base.Atomic || over.Atomic,
		DisablePreProcess:       base.DisablePreProcess || over.DisablePreProcess,
		DisableDNS:              base.DisableDNS || over.DisableDNS,
		SkipSchemaValidation:    base.SkipSchemaValidation || over.SkipSchemaValidation,
		DisableDependencyUpdate: base.DisableDependencyUpdate || over.DisableDependencyUpdate,
	}
}

func mergeKustomize(base, over fleet.KustomizeOptions) fleet.KustomizeOptions {
	return fleet.KustomizeOptions{Dir: cmp.Or(over.Dir, base.Dir)}
}

func mergeYAML(base, over fleet.YAMLOptions) fleet.YAMLOptions {
	return fleet.YAMLOptions{Overlays: concat(base.Overlays, over.Overlays)}
}

func mergeDiff(base, over fleet.DiffOptions) fleet.DiffOptions {
	return fleet.DiffOptions{ComparePatches: concat(base.ComparePatches, over.ComparePatches)}
}

func mergeGeneric(base, over fleet.GenericMap) fleet.GenericMap {
	return fleet.GenericMap{Data: fleet.MergeValues(base.Data, over.Data)}
}

// mergeWith merges what both have and returns what one has.
func mergeWith[T any](base, over *T, merge func(base, over T) T) *T {
	if base == nil || over == nil {
		return cmp.Or(over, base)
	}
	out := merge(*base, *over)
	return &out
}

// mergeKeys returns base with the keys of over, which replace what is there as a
// whole. It changes neither.
func mergeKeys[V any](base, over map[string]V) map[string]V {
	if len(over) == 0 {
		return base
	}
	out := make(map[string]V, len(base)+len(over))
	maps.Copy(out, base)
	maps.Copy(out, over)
	return out
}

func concat[T any](base, over []T) []T {
	if len(over) == 0 {
		return base
	}
	return slices.Concat(base, over)
}
