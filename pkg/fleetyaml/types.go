package fleetyaml

import (
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// FileNames are the names of the file, in the order in which they are looked
// for.
func FileNames() []string { return []string{"fleet.yaml", "fleet.yml"} }

// FleetYAML is the content of a fleet.yaml.
type FleetYAML struct {
	// Name is the name of the bundle; empty means one made from its path.
	Name string `json:"name,omitempty"`
	// Labels are the labels of the bundle; they win over those of the GitRepo.
	Labels map[string]string `json:"labels,omitempty"`
	// Metadata is another place for name and labels; the ones above win.
	Metadata Metadata `json:"metadata,omitempty"`

	// BundleSpec holds every field of a bundle. Targets act as further
	// customizations, before TargetCustomizations.
	fleet.BundleSpec `json:",inline"`

	// TargetCustomizations say what is different on some clusters.
	TargetCustomizations []fleet.BundleTarget `json:"targetCustomizations,omitempty"`
	// ImageScans ask for the images to look for in registries.
	ImageScans []ImageScan `json:"imageScans,omitempty"`
	// OverrideTargets replace the targets of the GitRepo for this bundle.
	OverrideTargets []fleet.GitTarget `json:"overrideTargets,omitempty"`

	lines map[string]int
}

// Metadata names the bundle as in a Kubernetes object.
type Metadata struct {
	// Name is the name of the bundle.
	Name string `json:"name,omitempty"`
	// Labels are the labels of the bundle.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are read and not used.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ImageScan asks for an image to look for in its registry.
type ImageScan struct {
	// Name is not used.
	Name string `json:"name,omitempty"`

	fleet.ImageScanSpec `json:",inline"`
}

// Line returns the line of the key at path, such as
// targetCustomizations[0].helm, or that of the nearest key above it; 1 where
// there is none.
func (f *FleetYAML) Line(path string) int {
	return lineOf(f.lines, path)
}

func lineOf(lines map[string]int, path string) int {
	for {
		if line, ok := lines[path]; ok {
			return max(line, 1)
		}
		if path == "" {
			return 1
		}
		path = above(path)
	}
}

// above returns the path without its last key or index.
func above(path string) string {
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == '.' || path[i] == '[' {
			return path[:i]
		}
	}
	return ""
}
