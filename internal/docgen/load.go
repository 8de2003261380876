package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// definition is one kind, as the chart defines it.
type definition = apiextensionsv1.CustomResourceDefinition

// schema is the schema of a field.
type schema = apiextensionsv1.JSONSchemaProps

// load reads all definitions of dir, sorted by kind.
func load(dir string) ([]definition, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no definitions in %s: run controller-gen first", dir)
	}
	kinds := make([]definition, len(files))
	for i, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := yaml.UnmarshalStrict(data, &kinds[i]); err != nil {
			return nil, fmt.Errorf("%s is no custom resource definition: %w", file, err)
		}
	}
	slices.SortFunc(kinds, func(a, b definition) int { return cmp.Compare(a.Spec.Names.Kind, b.Spec.Names.Kind) })
	return kinds, nil
}
