package render

import (
	"fmt"
	"path"
	"strings"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render/helm"
	"github.com/flotilla-sh/flotilla/internal/render/kustomize"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/source/chartref"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Reasons of the errors of this package, for conditions and events.
const (
	// ReasonLayout says that options name something that the bundle lacks.
	ReasonLayout = "InvalidLayout"
	// ReasonManifest says that a file holds no valid object.
	ReasonManifest = "InvalidManifest"
	// ReasonObjects says that the objects cannot be applied together.
	ReasonObjects = "InvalidObjects"
)

type sourceFile = source.File

// layout is what the files of a bundle are. Without a chart and a
// kustomization they are plain YAML.
type layout struct {
	chart         *chartFiles
	kustomization string // the file
}

// chartFiles is a chart in a bundle.
type chartFiles struct {
	dir   string
	files []sourceFile
	// synthesized is set for the templates of a bundle without Chart.yaml.
	synthesized bool
}

// detect finds out the layout of a bundle.
func detect(files []sourceFile, options *fleet.BundleDeploymentOptions) (layout, error) {
	chart, err := findChart(files, options.Helm)
	if err != nil {
		return layout{}, fault.Stall(ReasonLayout, err)
	}
	kustomization, err := findKustomization(files, options.Kustomize)
	if err != nil {
		return layout{}, fault.Stall(ReasonLayout, err)
	}
	return layout{chart: chart, kustomization: kustomization}, nil
}

// findChart returns the chart that helm.chart names, or the one in the root.
func findChart(files []sourceFile, options *fleet.HelmOptions) (*chartFiles, error) {
	switch {
	case options == nil || (options.Chart == "" && options.Repo == ""):
		return chartIn(files, "."), nil
	case chartref.IsRemote(options.Repo, options.Chart):
		return fetchedChart(files, options)
	}
	dir := path.Clean(strings.TrimPrefix(options.Chart, "/"))
	if found := chartIn(files, dir); found != nil {
		return found, nil
	}
	for _, file := range files {
		if file.Path == dir && strings.HasSuffix(dir, ".tgz") {
			return unpack(file)
		}
	}
	return nil, fmt.Errorf("helm.chart is %q and the bundle has no %s: correct the path, which is relative to the bundle's directory, or give helm.repo", options.Chart, path.Join(dir, "Chart.yaml"))
}

// chartIn returns the chart of a directory, or nil.
func chartIn(files []sourceFile, dir string) *chartFiles {
	prefix := ""
	if dir != "." {
		prefix = dir + "/"
	}
	chart := &chartFiles{dir: strings.TrimSuffix(prefix, "/")}
	found := false
	for _, file := range files {
		if name, ok := strings.CutPrefix(file.Path, prefix); ok {
			found = found || name == "Chart.yaml"
			chart.files = append(chart.files, sourceFile{Path: name, Data: file.Data})
		}
	}
	if !found {
		return nil
	}
	return chart
}

func unpack(archive sourceFile) (*chartFiles, error) {
	files, err := helm.LoadArchive(archive.Path, archive.Data)
	return &chartFiles{dir: archive.Path, files: files}, err
}

// fetchedChart returns the chart that was unpacked into the bundle when it was
// built; an archive has its files in one more directory.
func fetchedChart(files []sourceFile, options *fleet.HelmOptions) (*chartFiles, error) {
	dir := chartref.Dir(options.Repo, options.Chart, options.Version)
	best := ""
	for _, file := range files {
		if path.Base(file.Path) != "Chart.yaml" || !strings.HasPrefix(file.Path, dir+"/") {
			continue
		}
		if best == "" || strings.Count(file.Path, "/") < strings.Count(best, "/") {
			best = file.Path
		}
	}
	if best == "" {
		return nil, fmt.Errorf("the chart %s is not in the bundle: charts from elsewhere are packed into bundles of GitRepos and HelmOps, and by flotilla apply; into another put its files, below %s", strings.TrimSpace(options.Repo+" "+options.Chart+" "+options.Version), dir)
	}
	return chartIn(files, path.Dir(best)), nil
}

// findKustomization returns the kustomization that kustomize.dir names, or the
// one in the root, or "".
func findKustomization(files []sourceFile, options *fleet.KustomizeOptions) (string, error) {
	if options == nil || options.Dir == "" {
		return kustomize.Find(files, "."), nil
	}
	dir := path.Clean(strings.TrimPrefix(options.Dir, "/"))
	if found := kustomize.Find(files, dir); found != "" {
		return found, nil
	}
	return "", fmt.Errorf("kustomize.dir is %q and the bundle has no %s: correct the path, which is relative to the bundle's directory", options.Dir, path.Join(dir, "kustomization.yaml"))
}

func overlays(options *fleet.BundleDeploymentOptions) []string {
	if options.YAML == nil {
		return nil
	}
	return options.YAML.Overlays
}
