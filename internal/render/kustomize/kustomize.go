// Package kustomize builds kustomizations. It is the only door to Kustomize:
// it works on files in memory, without plugins, and nothing is fetched.
package kustomize

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"sync"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source"
)

// Reason says that a kustomization cannot be built.
const Reason = "KustomizeFailed"

// root is where the bundle lies in memory. It is not the root of the file
// system, so that a path that leads out of the bundle is seen as such.
const root = "/bundle"

// injected is the file by which rendered objects enter a kustomization.
const injected = "fleet-manifests.yaml"

// Input is what a build depends on.
type Input struct {
	// Files are the files of the bundle.
	Files []source.File
	// Dir is the directory with the kustomization, "" for the root.
	Dir string
	// Manifests are objects that the kustomization gets before its own
	// resources; nil where it stands alone.
	Manifests []byte
}

// Builder builds kustomizations, one at a time: Kustomize keeps its schemas in
// state that is shared by the process.
type Builder struct{ mu sync.Mutex }

// Build returns the objects of a kustomization in its order.
func (b *Builder) Build(ctx context.Context, in Input) ([]map[string]any, error) {
	tree := newTree(in.Files)
	if in.Manifests != nil {
		// Before the check, since the kustomization may name the file.
		tree[path.Join(in.Dir, injected)] = in.Manifests
	}
	if err := check(tree, path.Clean(in.Dir)); err != nil {
		return nil, fault.Stall(Reason, err)
	}
	if in.Manifests != nil {
		if err := tree.inject(path.Clean(in.Dir)); err != nil {
			return nil, fault.Stall(Reason, err)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	objects, err := b.run(tree, in.Dir)
	if err != nil {
		return nil, fault.Stall(Reason, explain(in.Dir, err))
	}
	return objects, nil
}

func (b *Builder) run(tree tree, dir string) ([]map[string]any, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	disk := filesys.MakeFsInMemory()
	for name, data := range tree {
		if err := disk.WriteFile(path.Join(root, name), data); err != nil {
			return nil, err
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, path.Join(root, dir))
	if err != nil {
		return nil, err
	}
	var objects []map[string]any
	for _, resource := range built.Resources() {
		text, err := resource.MarshalJSON()
		if err != nil {
			return nil, err
		}
		object, err := decode(text)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// decode reads JSON without changing its numbers.
func decode(text []byte) (map[string]any, error) {
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var object map[string]any
	return object, decoder.Decode(&object)
}

// explain shows paths as they are in the bundle.
func explain(dir string, err error) error {
	message := strings.ReplaceAll(err.Error(), root+"/", "")
	message = strings.ReplaceAll(message, root, ".")
	return fmt.Errorf("the kustomization in %s cannot be built: %s", shown(dir), strings.Join(strings.Fields(message), " "))
}

func shown(dir string) string {
	if dir = path.Clean(dir); dir == "." {
		return "the bundle's directory"
	}
	return dir
}
