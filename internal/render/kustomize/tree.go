package kustomize

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/flotilla-sh/flotilla/internal/source"
)

// names are the spellings of a kustomization file, in Kustomize's order.
func names() []string { return []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} }

// Find returns the kustomization file of a directory, or "".
func Find(files []source.File, dir string) string {
	for _, name := range names() {
		file := path.Join(dir, name)
		if slices.ContainsFunc(files, func(f source.File) bool { return f.Path == file }) {
			return file
		}
	}
	return ""
}

// IsKustomization tells by its name whether a file is a kustomization.
func IsKustomization(name string) bool { return slices.Contains(names(), path.Base(name)) }

// tree is the files of a bundle by their path.
type tree map[string][]byte

func newTree(files []source.File) tree {
	t := make(tree, len(files))
	for _, file := range files {
		t[file.Path] = file.Data
	}
	return t
}

// find returns the kustomization file of a directory, or "".
func (t tree) find(dir string) string {
	for _, name := range names() {
		if _, ok := t[path.Join(dir, name)]; ok {
			return path.Join(dir, name)
		}
	}
	return ""
}

func (t tree) isDir(dir string) bool {
	if dir == "." {
		return true
	}
	for name := range t {
		if strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}

// inject puts the rendered objects before the resources of the kustomization
// of dir.
func (t tree) inject(dir string) error {
	file := t.find(dir)
	var fields map[string]any
	if err := yaml.Unmarshal(t[file], &fields); err != nil {
		return fmt.Errorf("%s is not YAML: %w", file, err)
	}
	if fields == nil {
		fields = map[string]any{}
	}
	// A kustomization may name the file itself, to say where it comes.
	if own, _ := fields["resources"].([]any); !slices.Contains(own, any(injected)) {
		fields["resources"] = append([]any{injected}, own...)
	}
	text, err := yaml.Marshal(fields)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	t[file] = text
	return nil
}
