package labtest

import (
	"io/fs"
	"path"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-sh/flotilla/charts"
)

// Deployment returns the Deployment of one of the shipped charts, with the
// values of a file, as "helm template -f" renders it.
func Deployment(chart, values string) (*appsv1.Deployment, error) {
	var files []*loader.BufferedFile
	err := fs.WalkDir(charts.FS, chart, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(charts.FS, file)
		files = append(files, &loader.BufferedFile{Name: strings.TrimPrefix(file, chart+"/"), Data: data})
		return err
	})
	if err != nil {
		return nil, err
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, err
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		return nil, err
	}
	all, err := chartutil.ToRenderValues(loaded, given, chartutil.ReleaseOptions{Name: chart, Namespace: "cattle-fleet-system"}, nil)
	if err != nil {
		return nil, err
	}
	out, err := engine.Render(loaded, all)
	if err != nil {
		return nil, err
	}
	d := &appsv1.Deployment{}
	return d, yaml.UnmarshalStrict([]byte(out[path.Join(chart, "templates/deployment.yaml")]), d)
}
