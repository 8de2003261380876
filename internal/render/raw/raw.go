// Package raw knows bundles of plain YAML: overlays and patches, which files
// are objects, and the chart that is synthesized for those under templates/.
// It is pure.
package raw

import (
	"path"
	"slices"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/source"
)

// overlayDir holds the overlays; nothing in it is deployed by itself.
const overlayDir = "overlays"

// Manifests returns the files whose objects are deployed as they are: YAML and
// JSON files, except what belongs to a nested bundle or chart, to an overlay,
// or to the synthesized chart.
func Manifests(files []source.File) []source.File {
	foreign := foreignDirs(files)
	var out []source.File
	for _, file := range files {
		top, _, nested := strings.Cut(file.Path, "/")
		if nested && (top == overlayDir || top == "templates" || top == "charts") {
			continue
		}
		if isManifest(file.Path) && !isConfig(file.Path) && !within(foreign, file.Path) {
			out = append(out, file)
		}
	}
	return out
}

// Templates returns the files of the chart that a bundle without Chart.yaml
// may hold: templates/ and charts/ in its root. It is empty where there are none.
func Templates(files []source.File) []source.File {
	nested := nestedBundles(files)
	var out []source.File
	for _, file := range files {
		top, _, ok := strings.Cut(file.Path, "/")
		if ok && (top == "templates" || top == "charts") && !within(nested, file.Path) {
			out = append(out, file)
		}
	}
	return out
}

// isManifest tells by its name whether a file may hold objects.
func isManifest(name string) bool {
	ext := path.Ext(name)
	return ext == ".yaml" || ext == ".yml" || ext == ".json"
}

// isConfig tells whether a file configures the bundle.
func isConfig(name string) bool {
	base := path.Base(name)
	return base == "fleet.yaml" || base == "fleet.yml"
}

// nestedBundles returns the directories below the root with a fleet.yaml.
func nestedBundles(files []source.File) []string {
	return dirsOf(files, isConfig)
}

// foreignDirs returns the directories below the root that are bundles or
// charts of their own.
func foreignDirs(files []source.File) []string {
	return dirsOf(files, func(name string) bool {
		return isConfig(name) || path.Base(name) == "Chart.yaml"
	})
}

func dirsOf(files []source.File, match func(string) bool) []string {
	var dirs []string
	for _, file := range files {
		if dir := path.Dir(file.Path); dir != "." && match(file.Path) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func within(dirs []string, name string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(name, dir+"/") })
}
