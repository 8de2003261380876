package kustomize

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/flotilla-sh/flotilla/internal/fault"
)

// maxNodes bounds what aliases can blow small files up to.
const maxNodes = 200_000

// checker looks for what would leave the bundle, or run a program, in the
// kustomization of a directory and all that it builds on, before Kustomize gets
// to see it. It collects all that it finds.
type checker struct {
	tree
	seen  map[visit]bool
	nodes int
	errs  []error
}

// visit is a directory that was looked at, as configuration of plugins or not.
type visit struct {
	dir     string
	plugins bool
}

// check refuses what must not be built.
func check(t tree, dir string) error {
	c := &checker{tree: t, seen: map[visit]bool{}}
	c.directory(dir, false)
	return errors.Join(c.errs...)
}

func (c *checker) refuse(file string, n *yaml.Node, format string, args ...any) {
	c.errs = append(c.errs, fault.At(file, n.Line, fmt.Errorf(format, args...)))
}

// documents parses a file, all its aliases counted.
func (c *checker) documents(file string, text []byte) []*yaml.Node {
	var all []*yaml.Node
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var document yaml.Node
		if err := decoder.Decode(&document); err != nil {
			return all // no YAML, or the end: Kustomize says what is wrong
		}
		if len(document.Content) == 0 {
			continue
		}
		if c.nodes += size(document.Content[0], maxNodes-c.nodes); c.nodes >= maxNodes {
			c.refuse(file, document.Content[0], "the kustomization is too large (more than %d values, aliases resolved)", maxNodes)
			return nil
		}
		all = append(all, document.Content[0])
	}
}

// size counts the values below n, up to a limit.
func size(n *yaml.Node, limit int) int {
	total := 1
	for _, child := range resolve(n).Content {
		if total >= limit {
			break
		}
		total += size(child, limit-total)
	}
	return total
}

// resolve follows an alias, so that none hides what it stands for.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// fields calls visit for each field of a map, those that a merge key brings
// included.
func fields(n *yaml.Node, visit func(key, value *yaml.Node)) {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolve(n.Content[i]), n.Content[i+1]
		if key.Value != "<<" {
			visit(key, value)
			continue
		}
		fields(value, visit)
		for _, merged := range entries(value) {
			fields(merged, visit)
		}
	}
}

// entries returns the items of a list.
func entries(n *yaml.Node) []*yaml.Node {
	if n = resolve(n); n.Kind == yaml.SequenceNode {
		return n.Content
	}
	return nil
}

// directory looks at the kustomization of a directory. What a directory of
// plugins builds is their configuration.
func (c *checker) directory(dir string, plugins bool) {
	file := c.find(dir)
	if file == "" || c.seen[visit{dir, plugins}] {
		return // Kustomize names what is missing and what goes round in circles
	}
	c.seen[visit{dir, plugins}] = true
	for _, document := range c.documents(file, c.tree[file]) {
		fields(document, func(key, value *yaml.Node) { c.field(file, key, value, plugins) })
	}
}

// field looks at one field of a kustomization.
func (c *checker) field(file string, key, value *yaml.Node, plugins bool) {
	switch key.Value {
	case "helmCharts", "helmChartInflationGenerator", "helmGlobals":
		c.refuse(file, key, "%s is not supported, because it runs helm and fetches charts while it builds: put the chart into the bundle and use helm in fleet.yaml, the kustomization is then applied to its output", key.Value)
	case "resources", "bases", "components":
		for _, entry := range entries(value) {
			c.base(file, entry, plugins)
		}
	case "generators", "transformers", "validators":
		for _, entry := range entries(value) {
			c.plugin(file, entry)
		}
	case "crds", "configurations":
		c.files(file, value)
	case "patchesStrategicMerge":
		for _, entry := range entries(value) {
			if !isInline(resolve(entry).Value) {
				c.file(file, entry, resolve(entry).Value)
			}
		}
	case "patches", "patchesJson6902", "replacements":
		for _, entry := range entries(value) {
			fields(entry, func(key, value *yaml.Node) { c.named(file, key, value, "path") })
		}
	case "openapi":
		fields(value, func(key, value *yaml.Node) { c.named(file, key, value, "path") })
	case "configMapGenerator", "secretGenerator":
		for _, entry := range entries(value) {
			fields(entry, func(key, value *yaml.Node) { c.named(file, key, value, "files", "envs", "env") })
		}
	}
}

// base looks at an entry that may be a directory.
func (c *checker) base(file string, entry *yaml.Node, plugins bool) {
	text := resolve(entry).Value
	target := path.Join(path.Dir(file), text)
	switch _, isFile := c.tree[target]; {
	case isURL(text):
		c.remote(file, entry, text)
	case isFile:
		c.file(file, entry, text)
		if plugins {
			c.configurations(target, c.documents(target, c.tree[target]))
		}
	case c.isDir(target):
		c.directory(target, plugins)
	case isRemote(text):
		c.remote(file, entry, text)
	default:
		c.absent(file, entry, text)
	}
}

// plugin looks at a generator, transformer or validator: a file, a directory
// or inline YAML.
func (c *checker) plugin(file string, entry *yaml.Node) {
	text := resolve(entry).Value
	target := path.Join(path.Dir(file), text)
	data, isFile := c.tree[target]
	switch {
	case isInline(text):
		c.configurations(file, c.inline(file, resolve(entry)))
	case isFile:
		c.file(file, entry, text)
		c.configurations(target, c.documents(target, data))
	case c.isDir(target):
		c.directory(target, true)
	default:
		c.file(file, entry, text)
	}
}

// inline parses YAML that stands in a kustomization.
func (c *checker) inline(file string, entry *yaml.Node) []*yaml.Node {
	documents := c.documents(file, []byte(entry.Value))
	for _, document := range documents {
		shift(document, entry)
	}
	return documents
}

// shift makes lines of a text lines of the file that it stands in.
func shift(n, text *yaml.Node) {
	if text.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		n.Line = 0
	}
	n.Line += text.Line
	for _, child := range n.Content {
		shift(child, text)
	}
}

// configurations looks at the configuration of plugins: only those that are
// built in may run.
func (c *checker) configurations(file string, documents []*yaml.Node) {
	for _, document := range documents {
		kind, builtin := document, false
		name := ""
		fields(document, func(key, value *yaml.Node) {
			switch value = resolve(value); key.Value {
			case "apiVersion":
				builtin = value.Value == "builtin"
			case "kind":
				kind, name = value, value.Value
			}
		})
		switch {
		case name == "HelmChartInflationGenerator":
			c.refuse(file, kind, "%s is not supported, because it runs helm and fetches charts while it builds: put the chart into the bundle and use helm in fleet.yaml", name)
		case !builtin:
			c.refuse(file, kind, "%s is a plugin, and no program is run while a bundle is rendered: use one of Kustomize's own (apiVersion: builtin), or commit what the plugin makes", shownKind(name))
		default:
			c.urls(file, document)
		}
	}
}

func shownKind(name string) string {
	if name == "" {
		return "this"
	}
	return name
}

// named looks at the value of a field that holds names of files.
func (c *checker) named(file string, key, value *yaml.Node, fields ...string) {
	if slices.Contains(fields, key.Value) {
		c.files(file, value)
	}
}

// files looks at a name of a file, or a list of names.
func (c *checker) files(file string, value *yaml.Node) {
	if n := resolve(value); n.Kind == yaml.ScalarNode && n.Value != "" {
		c.file(file, n, lastPart(n.Value))
	}
	for _, entry := range entries(value) {
		c.files(file, entry)
	}
}

// file refuses what Kustomize would not find in or below the directory of the
// kustomization.
func (c *checker) file(file string, at *yaml.Node, name string) {
	dir := path.Dir(file)
	target := path.Join(dir, name)
	_, there := c.tree[target]
	switch {
	case isURL(name), !there && isRemote(name):
		c.remote(file, at, name)
	case !there:
		c.absent(file, at, name)
	case dir != "." && !strings.HasPrefix(target, dir+"/"):
		c.refuse(file, at, "%s is not in or below %s, and a kustomization reads files only there: move it, or make a kustomization of its directory and list that", name, dir)
	}
}

// urls looks for URLs in the fields of a built-in plugin that hold names of
// files. Elsewhere a URL is mere text.
func (c *checker) urls(file string, n *yaml.Node) {
	fields(n, func(key, value *yaml.Node) {
		switch key.Value {
		case "files", "envs", "env", "path", "paths":
			c.urlsIn(file, value)
		}
		c.urls(file, value)
	})
	for _, entry := range entries(n) {
		c.urls(file, entry)
	}
}

func (c *checker) urlsIn(file string, value *yaml.Node) {
	if n := resolve(value); n.Kind == yaml.ScalarNode && !isInline(n.Value) && isRemote(lastPart(n.Value)) {
		c.remote(file, n, n.Value)
	}
	for _, entry := range entries(value) {
		c.urlsIn(file, entry)
	}
}

func (c *checker) absent(file string, entry *yaml.Node, name string) {
	c.refuse(file, entry, "%s is not in the bundle: correct the path; what is outside the bundle's directory cannot be used", name)
}

func (c *checker) remote(file string, entry *yaml.Node, name string) {
	c.refuse(file, entry, "%s is outside the bundle, and nothing is fetched while a bundle is rendered: copy it into the repository", name)
}

// isInline tells YAML from the name of a file.
func isInline(text string) bool { return strings.ContainsAny(text, "\n{[") }

// lastPart drops the key of KEY=FILE.
func lastPart(text string) string {
	if key, file, ok := strings.Cut(text, "="); ok && !strings.ContainsAny(key, ":/?") {
		return file
	}
	return text
}

// isURL tells whether Kustomize would fetch a file even where one of this name
// is there.
func isURL(entry string) bool {
	u, err := url.Parse(entry)
	return strings.Contains(entry, "://") || err == nil && (u.Scheme == "http" || u.Scheme == "https")
}

// isRemote tells whether Kustomize would take a path for something to fetch.
func isRemote(entry string) bool {
	lower := strings.ToLower(entry)
	return isURL(entry) || strings.HasPrefix(lower, "git::") || strings.HasPrefix(lower, "github.com/") ||
		strings.HasPrefix(lower, "git@") || strings.Contains(lower, "?ref=") || strings.Contains(lower, ".git/") || strings.HasSuffix(lower, ".git")
}
