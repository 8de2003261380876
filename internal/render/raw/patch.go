package raw

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render/manifest"
	"github.com/flotilla-sh/flotilla/internal/source"
)

// identity is what a patch, or what it is for, says of itself. Values and
// kustomizations can be patched too, and have none.
type identity struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
}

func (id identity) String() string { return strings.TrimSpace(id.Kind + " " + id.Metadata.Name) }

// document is one document of a file that is patched.
type document struct {
	identity
	text []byte // as JSON
	line int
}

// applyPatch patches the one document of a file that the patch is for.
func applyPatch(name string, data []byte, patch source.File) ([]byte, error) {
	docs, err := documents(data)
	if err != nil {
		return nil, fault.In(patch.Path, 0, fmt.Errorf("%s cannot be patched by %s: %w", name, patch.Path, err))
	}
	patchJSON, err := yaml.YAMLToJSON(patch.Data)
	if err != nil {
		return nil, fault.In(patch.Path, 0, fmt.Errorf("%s is not YAML: %w", patch.Path, err))
	}
	index, err := choose(docs, patchJSON)
	if err != nil {
		return nil, fault.In(patch.Path, 0, fmt.Errorf("%s cannot be applied to %s: %w", patch.Path, name, err))
	}
	doc := &docs[index]
	if doc.text, err = sortedKeys(doc.patch(patchJSON)); err != nil {
		return nil, fault.In(patch.Path, 0, fmt.Errorf("%s cannot be applied to %s:%d (%s): %w", patch.Path, name, doc.line, doc.identity, err))
	}
	return join(docs), nil
}

// documents reads the documents of a file.
func documents(data []byte) ([]document, error) {
	values, err := manifest.Values(data)
	if err != nil {
		return nil, err
	}
	docs := make([]document, len(values))
	for i, value := range values {
		docs[i].line = value.Line
		if docs[i].text, err = json.Marshal(value.Content); err != nil {
			return nil, err
		}
		// What is of another shape has no identity.
		_ = json.Unmarshal(docs[i].text, &docs[i].identity)
	}
	return docs, nil
}

// join writes documents as one file, each on the line that it had where there
// is room, so that messages name the lines of the file in Git.
func join(docs []document) []byte {
	var out bytes.Buffer
	line := 1
	for i, doc := range docs {
		if i > 0 {
			out.WriteString("---\n")
			line++
		}
		for ; line < doc.line; line++ {
			out.WriteByte('\n')
		}
		out.Write(doc.text)
		out.WriteByte('\n')
		line++
	}
	return out.Bytes()
}

// choose returns the index of the document that a patch is for: the one that
// it names, or the only one.
func choose(docs []document, patch []byte) (int, error) {
	var named identity
	if !isList(patch) {
		if err := json.Unmarshal(patch, &named); err != nil {
			return 0, fmt.Errorf("a patch is a list of JSON Patch operations or a part of an object: %w", err)
		}
	}
	found := -1
	for i, doc := range docs {
		if (named.Kind != "" && named.Kind != doc.Kind) || (named.Metadata.Name != "" && named.Metadata.Name != doc.Metadata.Name) {
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
	case len(docs) == 0:
		return 0, errors.New("the file is empty")
	}
	return 0, fmt.Errorf("the file has no %s", named)
}

// patch applies a patch as its content implies: a list is a JSON Patch, a part
// of a built-in kind a strategic merge patch, of anything else a merge patch.
func (d *document) patch(patch []byte) ([]byte, error) {
	if isList(patch) {
		operations, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, err
		}
		return operations.Apply(d.text)
	}
	kind := schema.FromAPIVersionAndKind(d.APIVersion, d.Kind)
	if typed, err := scheme.Scheme.New(kind); err == nil {
		return strategicpatch.StrategicMergePatch(d.text, patch, typed)
	}
	return jsonpatch.MergePatch(d.text, patch)
}

// sortedKeys gives what a patch made an order: the library has none.
func sortedKeys(text []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

func isList(text []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) }
