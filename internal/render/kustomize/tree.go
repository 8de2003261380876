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

// check refuses what would leave the bundle, in the kustomization of dir and
// all that it builds on, before Kustomize gets to see it.
func (t tree) check(dir string) error { return t.checkDir(dir, map[string]bool{}) }

func (t tree) checkDir(dir string, seen map[string]bool) error {
	file := t.find(dir)
	if file == "" || seen[dir] {
		return nil // Kustomize names what is missing and what goes round in circles
	}
	seen[dir] = true
	var document yaml.Node
	if err := yaml.Unmarshal(t[file], &document); err != nil {
		return fmt.Errorf("%s is not YAML: %w", file, err)
	}
	if len(document.Content) == 0 {
		return nil
	}
	return t.checkFields(file, document.Content[0], seen)
}

// checkFields looks at the fields of one kustomization.
func (t tree) checkFields(file string, fields *yaml.Node, seen map[string]bool) error {
	if fields.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(fields.Content); i += 2 {
		key, value := fields.Content[i], fields.Content[i+1]
		var err error
		switch key.Value {
		case "helmCharts", "helmChartInflationGenerator", "helmGlobals":
			err = fmt.Errorf("%s:%d: %s is not supported, because it fetches charts while it builds: put the chart into the bundle and use helm in fleet.yaml, the kustomization is then applied to its output", file, key.Line, key.Value)
		case "resources", "bases", "components":
			err = t.checkBases(file, value, seen)
		case "crds", "configurations", "patchesStrategicMerge":
			err = checkPaths(file, value)
		case "generators", "transformers", "validators":
			err = t.checkPlugins(file, value, seen)
		default:
			err = checkNamed(file, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkBases follows the entries that may be directories.
func (t tree) checkBases(file string, entries *yaml.Node, seen map[string]bool) error {
	for _, entry := range entries.Content {
		target := path.Join(path.Dir(file), entry.Value)
		switch _, isFile := t[target]; {
		case isFile:
		case t.isDir(target):
			if err := t.checkDir(target, seen); err != nil {
				return err
			}
		case isRemote(entry.Value):
			return remoteError(file, entry)
		default:
			return fmt.Errorf("%s:%d: %s is not in the bundle: correct the path; what is outside the bundle's directory cannot be used", file, entry.Line, entry.Value)
		}
	}
	return nil
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

// checkPlugins follows the configurations of generators and transformers,
// which are files, directories or inline YAML.
func (t tree) checkPlugins(file string, entries *yaml.Node, seen map[string]bool) error {
	if err := checkPaths(file, entries); err != nil {
		return err
	}
	for _, entry := range entries.Content {
		text, from := []byte(entry.Value), file
		target := path.Join(path.Dir(file), entry.Value)
		if data, isFile := t[target]; isFile {
			text, from = data, target
		} else if t.find(target) != "" {
			if err := t.checkDir(target, seen); err != nil {
				return err
			}
			continue
		}
		var document yaml.Node
		if yaml.Unmarshal(text, &document) == nil {
			if err := checkNamed(from, &document); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkNamed looks for URLs in the fields that hold names of files. Elsewhere,
// as in a label or an inline patch, a URL is mere text.
func checkNamed(file string, value *yaml.Node) error {
	for i, child := range value.Content {
		if value.Kind == yaml.MappingNode && i%2 == 1 {
			switch value.Content[i-1].Value {
			case "files", "envs", "env", "path", "paths", "crds", "configurations":
				if err := checkPaths(file, child); err != nil {
					return err
				}
			}
		}
		if err := checkNamed(file, child); err != nil {
			return err
		}
	}
	return nil
}

// checkPaths refuses a URL as the name of a file, or among a list of names.
func checkPaths(file string, value *yaml.Node) error {
	if value.Kind == yaml.ScalarNode && !strings.ContainsAny(value.Value, " \n{[") && isRemote(lastPart(value.Value)) {
		return remoteError(file, value)
	}
	for _, child := range value.Content {
		if err := checkPaths(file, child); err != nil {
			return err
		}
	}
	return nil
}

// lastPart drops the key of KEY=FILE.
func lastPart(text string) string {
	if key, file, ok := strings.Cut(text, "="); ok && !strings.ContainsAny(key, ":/?") {
		return file
	}
	return text
}

func remoteError(file string, entry *yaml.Node) error {
	return fmt.Errorf("%s:%d: %s is outside the bundle, and nothing is fetched while a bundle is rendered: copy it into the repository", file, entry.Line, entry.Value)
}

// isRemote tells whether Kustomize would take a path for something to fetch.
func isRemote(entry string) bool {
	lower := strings.ToLower(entry)
	return strings.Contains(lower, "://") || strings.HasPrefix(lower, "git::") || strings.HasPrefix(lower, "github.com/") ||
		strings.HasPrefix(lower, "git@") || strings.Contains(lower, "?ref=") || strings.Contains(lower, ".git/") || strings.HasSuffix(lower, ".git")
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
	if own, _ := fields["resources"].([]any); !slices.Contains(own, any(Injected)) {
		fields["resources"] = append([]any{Injected}, own...)
	}
	text, err := yaml.Marshal(fields)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	t[file] = text
	return nil
}
