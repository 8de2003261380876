package fleetyaml

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// acceptedStates are the states that a dependency may be asked to have.
func acceptedStates() []string {
	return []string{
		string(fleet.Ready), string(fleet.NotReady), string(fleet.Pending), string(fleet.OutOfSync),
		string(fleet.Modified), string(fleet.WaitApplied), string(fleet.ErrApplied),
	}
}

// validate checks what types cannot say.
func (d *decoder) validate(f *FleetYAML) {
	d.name("name", f.Name)
	d.name("metadata.name", f.Metadata.Name)
	d.labels("labels", f.Labels)
	d.labels("metadata.labels", f.Metadata.Labels)
	d.options("", &f.BundleDeploymentOptions)
	d.dependencies(f.DependsOn)
	d.mode(f.TargetCustomizationMode)
	for i := range f.Targets {
		d.target(fmt.Sprintf("targets[%d]", i), &f.Targets[i])
	}
	for i := range f.TargetCustomizations {
		d.target(fmt.Sprintf("targetCustomizations[%d]", i), &f.TargetCustomizations[i])
	}
	if f.OverrideTargets != nil && len(f.OverrideTargets) == 0 {
		d.warnAt("overrideTargets", "%q is empty and has no effect: the targets of the GitRepo hold; to deploy nowhere, use targetCustomizations with doNotDeploy", "overrideTargets")
	}
	for i := range f.OverrideTargets {
		d.gitTarget(fmt.Sprintf("overrideTargets[%d]", i), &f.OverrideTargets[i])
	}
	d.controllerFields(f)
}

func (d *decoder) errorAt(path, format string, args ...any) {
	d.report(lineOf(d.lines, path), Error, path, fmt.Sprintf(format, args...))
}

func (d *decoder) warnAt(path, format string, args ...any) {
	d.report(lineOf(d.lines, path), Warning, path, fmt.Sprintf(format, args...))
}

func (d *decoder) name(path, name string) {
	if name == "" {
		return
	}
	if len(name) > validation.LabelValueMaxLength {
		d.errorAt(path, "%q: %q cannot be the name of a bundle: it is %d characters long, and %d fit into a label", path, name, len(name), validation.LabelValueMaxLength)
		return
	}
	for _, reason := range validation.IsDNS1123Subdomain(name) {
		d.errorAt(path, "%q: %q cannot be the name of a bundle: %s", path, name, reason)
	}
}

func (d *decoder) labels(path string, labels map[string]string) {
	for key, value := range labels {
		for _, reason := range validation.IsQualifiedName(key) {
			d.errorAt(path+"."+key, "%q: %q cannot be the key of a label: %s", path, key, reason)
		}
		for _, reason := range validation.IsValidLabelValue(value) {
			d.errorAt(path+"."+key, "%q: %q cannot be the value of the label %s: %s", path, value, key, reason)
		}
	}
}

// options checks the options of the bundle or of one target at path.
func (d *decoder) options(path string, o *fleet.BundleDeploymentOptions) {
	d.helm(join(path, "helm"), o.Helm)
	d.namespace(join(path, "defaultNamespace"), o.DefaultNamespace)
	d.namespace(join(path, "namespace"), o.TargetNamespace)
	if o.Render != "" && !slices.Contains([]fleet.RenderMode{fleet.RenderAuto, fleet.RenderHub, fleet.RenderAgent}, o.Render) {
		at := join(path, "render")
		d.errorAt(at, "%q is %q; it must be auto, hub or agent", at, o.Render)
	}
	if o.Diff != nil {
		for i := range o.Diff.ComparePatches {
			d.comparePatch(fmt.Sprintf("%s[%d]", join(path, "diff.comparePatches"), i), &o.Diff.ComparePatches[i])
		}
	}
}

func (d *decoder) namespace(path, name string) {
	if name == "" {
		return
	}
	for _, reason := range validation.IsDNS1123Label(name) {
		d.errorAt(path, "%q: %q cannot be the name of a namespace: %s", path, name, reason)
	}
}

func (d *decoder) helm(path string, h *fleet.HelmOptions) {
	if h == nil || h.ReleaseName == "" {
		return
	}
	at := join(path, "releaseName")
	const longest = 53
	if len(h.ReleaseName) > longest {
		d.errorAt(at, "%q is %d characters long; Helm allows %d", at, len(h.ReleaseName), longest)
	}
	for _, reason := range validation.IsDNS1123Subdomain(h.ReleaseName) {
		d.errorAt(at, "%q: %q cannot be the name of a release: %s", at, h.ReleaseName, reason)
	}
}

// comparePatch checks that names that are used as patterns are patterns.
func (d *decoder) comparePatch(path string, p *fleet.ComparePatch) {
	ignores := slices.ContainsFunc(p.Operations, func(o fleet.Operation) bool { return o.Op == "ignore" })
	if !ignores {
		return
	}
	if _, err := regexp.Compile(p.Name); err != nil {
		at := join(path, "name")
		d.errorAt(at, "%q is a regular expression where the operation is ignore, and %q is none: %v", at, p.Name, err)
	}
}

func (d *decoder) dependencies(refs []fleet.BundleRef) {
	for i, ref := range refs {
		path := fmt.Sprintf("dependsOn[%d]", i)
		if ref.Name == "" && ref.Selector == nil {
			d.errorAt(path, "%q must specify either name or selector, else it depends on nothing", path)
		}
		d.selector(join(path, "selector"), ref.Selector)
		for j, state := range ref.AcceptedStates {
			if !slices.Contains(acceptedStates(), string(state)) {
				at := fmt.Sprintf("%s.acceptedStates[%d]", path, j)
				d.errorAt(at, "%q: invalid state %q; one of %s", at, state, strings.Join(acceptedStates(), ", "))
			}
		}
	}
}

func (d *decoder) mode(mode fleet.TargetCustomizationMode) {
	const path = "targetCustomizationMode"
	switch mode {
	case "", fleet.FirstMatch, fleet.AllMatches:
	default:
		d.errorAt(path, "%q is %q; it must be %s or %s", path, mode, fleet.FirstMatch, fleet.AllMatches)
	}
}

func (d *decoder) target(path string, t *fleet.BundleTarget) {
	d.options(path, &t.BundleDeploymentOptions)
	t.Overwrites, t.AllowedTargetNamespaceSelector = nil, nil
	d.gitTarget(path, &fleet.GitTarget{
		ClusterName: t.ClusterName, ClusterSelector: t.ClusterSelector,
		ClusterGroup: t.ClusterGroup, ClusterGroupSelector: t.ClusterGroupSelector,
	})
}

func (d *decoder) gitTarget(path string, t *fleet.GitTarget) {
	d.selector(join(path, "clusterSelector"), t.ClusterSelector)
	d.selector(join(path, "clusterGroupSelector"), t.ClusterGroupSelector)
	if t.ClusterName == "" && t.ClusterSelector == nil && t.ClusterGroup == "" && t.ClusterGroupSelector == nil {
		d.warnAt(path, "%q selects no cluster: it has none of clusterName, clusterSelector, clusterGroup and clusterGroupSelector (clusterSelector: {} selects all)", path)
	}
}

func (d *decoder) selector(path string, s *metav1.LabelSelector) {
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
		d.errorAt(path, "%q: %v", path, err)
	}
}

// controllerFieldNames are the keys that only controllers write.
func controllerFieldNames() []string {
	return []string{
		"resources", "targetRestrictions", "contentsId", "helmOpOptions",
		"valuesHash", "overwrites", "allowedTargetNamespaceSelector", "charts",
	}
}

func writtenByController(key string) bool { return slices.Contains(controllerFieldNames(), key) }

// controllerFields takes out what only controllers write, with a warning.
func (d *decoder) controllerFields(f *FleetYAML) {
	for _, key := range controllerFieldNames() {
		if _, set := d.lines[key]; set {
			d.warnAt(key, "%q is written by the controller and has no effect here", key)
		}
	}
	f.Resources, f.TargetRestrictions, f.ContentsID = nil, nil, ""
	f.HelmOpOptions, f.ValuesHash, f.Overwrites, f.Charts = nil, "", nil, nil
	f.AllowedTargetNamespaceSelector = nil
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
