package raw

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-sh/flotilla/internal/render/manifest"
	"github.com/flotilla-sh/flotilla/internal/source"
)

// applyPatch patches the one object of a file that the patch is for.
func applyPatch(name string, data []byte, patch source.File) ([]byte, error) {
	parsed, err := manifest.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be patched by %s: %w", name, patch.Path, err)
	}
	patchJSON, err := yaml.YAMLToJSON(patch.Data)
	if err != nil {
		return nil, fmt.Errorf("%s is not YAML: %w", patch.Path, err)
	}
	index, err := choose(parsed.Docs, patchJSON)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be applied to %s: %w", patch.Path, name, err)
	}
	var out bytes.Buffer
	for i, doc := range parsed.Docs {
		text := doc.JSON
		if i == index {
			if text, err = patchObject(&doc, patchJSON); err != nil {
				return nil, fmt.Errorf("%s cannot be applied to %s (%s %s): %w", patch.Path, name, doc.Kind, doc.Name, err)
			}
		}
		fmt.Fprintf(&out, "---\n%s\n", text)
	}
	return out.Bytes(), nil
}

// choose returns the index of the object that a patch is for: the one that it
// names, or the only one.
func choose(docs []manifest.Doc, patch []byte) (int, error) {
	var named struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if !isList(patch) {
		if err := json.Unmarshal(patch, &named); err != nil {
			return 0, fmt.Errorf("a patch is a list of JSON Patch operations or a part of an object: %w", err)
		}
	}
	found := -1
	for i, doc := range docs {
		if (named.Kind != "" && named.Kind != doc.Kind) || (named.Metadata.Name != "" && named.Metadata.Name != doc.Name) {
			continue
		}
		if found >= 0 {
			return 0, errors.New("the file has several objects that it could be for: give kind and metadata.name in the patch, or put the object into a file of its own")
		}
		found = i
	}
	switch {
	case found >= 0:
		return found, nil
	case len(docs) == 1: // a patch may rename the only object
		return 0, nil
	}
	return 0, fmt.Errorf("the file has no %s %s", named.Kind, named.Metadata.Name)
}

// patchObject applies a patch as its content implies: a list is a JSON Patch,
// a part of a built-in kind a strategic merge patch, of another kind a merge
// patch.
func patchObject(doc *manifest.Doc, patch []byte) ([]byte, error) {
	if isList(patch) {
		operations, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, err
		}
		return operations.Apply(doc.JSON)
	}
	kind := schema.FromAPIVersionAndKind(doc.APIVersion, doc.Kind)
	if typed, err := scheme.Scheme.New(kind); err == nil {
		return strategicpatch.StrategicMergePatch(doc.JSON, patch, typed)
	}
	return jsonpatch.MergePatch(doc.JSON, patch)
}

func isList(text []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) }
