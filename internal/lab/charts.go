package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-sh/flotilla/charts"
)

// release is what a chart renders to.
type release struct {
	// objects are in the order in which Helm installs them, without the
	// Deployment, whose place a local process takes.
	objects []*unstructured.Unstructured
	// serviceAccount is the one that the Deployment runs as.
	serviceAccount string
	// args are those of the Deployment's container.
	args []string
}

// install applies one of Flotilla's charts, as "helm install" would.
func (c *cluster) install(ctx context.Context, chart string) (release, error) {
	rendered, err := renderChart(charts.FS, chart)
	if err != nil {
		return release{}, err
	}
	applier, err := c.applier()
	if err != nil {
		return release{}, err
	}
	objects := append([]*unstructured.Unstructured{namespaceObject(systemNamespace)}, rendered.objects...)
	for _, object := range objects {
		if err := applier.apply(ctx, object); err != nil {
			return release{}, fmt.Errorf("chart %s on %s: %w", chart, c.name, err)
		}
	}
	return rendered, applier.established(ctx, rendered.objects)
}

// renderChart renders a chart with its own values.
func renderChart(files fs.FS, name string) (release, error) {
	buffered, err := chartFiles(files, name)
	if err != nil {
		return release{}, fmt.Errorf("chart %s: %w", name, err)
	}
	chart, err := loader.LoadFiles(buffered)
	if err != nil {
		return release{}, fmt.Errorf("chart %s: %w", name, err)
	}
	values, err := chartutil.ToRenderValues(chart, nil,
		chartutil.ReleaseOptions{Name: name, Namespace: systemNamespace, Revision: 1, IsInstall: true},
		chartutil.DefaultCapabilities)
	if err != nil {
		return release{}, fmt.Errorf("chart %s: %w", name, err)
	}
	templates, err := engine.Render(chart, values)
	if err != nil {
		return release{}, err
	}
	for _, crd := range chart.CRDObjects() {
		templates[crd.Filename] = string(crd.File.Data)
	}
	return sortTemplates(templates)
}

// chartFiles reads a chart's directory, with paths relative to it.
func chartFiles(files fs.FS, name string) ([]*loader.BufferedFile, error) {
	var buffered []*loader.BufferedFile
	err := fs.WalkDir(files, name, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, file)
		buffered = append(buffered, &loader.BufferedFile{Name: strings.TrimPrefix(file, name+"/"), Data: data})
		return err
	})
	return buffered, err
}

// sortTemplates turns rendered templates into the objects to apply.
func sortTemplates(templates map[string]string) (release, error) {
	for file := range templates {
		if path.Ext(file) != ".yaml" {
			delete(templates, file)
		}
	}
	_, manifests, err := releaseutil.SortManifests(templates, nil, releaseutil.InstallOrder)
	if err != nil {
		return release{}, err
	}
	var result release
	for _, manifest := range manifests {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest.Content), &object.Object); err != nil {
			return release{}, fmt.Errorf("%s: %w", manifest.Name, err)
		}
		if object.GetKind() == "Deployment" {
			if err := result.replace(object); err != nil {
				return release{}, fmt.Errorf("%s: %w", manifest.Name, err)
			}
			continue
		}
		result.objects = append(result.objects, object)
	}
	return result, nil
}

// replace takes from a Deployment what a process in its place needs to know.
func (r *release) replace(object *unstructured.Unstructured) error {
	var deployment appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment); err != nil {
		return err
	}
	pod := deployment.Spec.Template.Spec
	if len(pod.Containers) == 0 {
		return errors.New("the Deployment has no container")
	}
	r.serviceAccount, r.args = pod.ServiceAccountName, pod.Containers[0].Args
	return nil
}

func namespaceObject(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}
}

// crdsAmong returns the names of the CRDs.
func crdsAmong(objects []*unstructured.Unstructured) []string {
	var names []string
	for _, object := range objects {
		if object.GetKind() == "CustomResourceDefinition" {
			names = append(names, object.GetName())
		}
	}
	slices.Sort(names)
	return names
}
