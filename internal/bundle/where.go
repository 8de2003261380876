package bundle

import (
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/templating"
)

// The paths of Helm values in fleet.yaml.
const (
	valuesPath = "helm.values."
	valuesKey  = "valuesFiles"
)

// Placed gives each error of a template in the values of a draft its place: the
// file and line of the repository where the template stands. Other errors are
// returned as they are.
func (d *Draft) Placed(fsys fs.FS, err error) error {
	found := templating.Errors(err)
	if len(found) == 0 || d.Config == "" {
		return err
	}
	texts := d.texts(fsys)
	errs := make([]error, len(found))
	for i, e := range found {
		file, line := d.Config, 0
		for _, exact := range []bool{true, false} {
			if line != 0 {
				break
			}
			for _, t := range texts {
				if at := t.line(e, exact); at != 0 {
					file, line = t.file, at
					break
				}
			}
		}
		errs[i] = fault.At(file, line, e)
	}
	return errors.Join(errs...)
}

// text is a scalar of a file with values.
type text struct {
	file string
	// path is where it stands below the root of the file; in a values file it
	// begins with that of the values.
	path string
	node *yaml.Node
}

// line returns the line of the template that an error is of, or 0 where the
// text is another one. Where exact is not set its path may be any.
func (t *text) line(e *templating.Error, exact bool) int {
	here := t.path == e.Path || strings.HasSuffix(t.path, "."+e.Path)
	if exact && !here || e.Text != "" && t.node.Value != e.Text || e.Text == "" && !here {
		return 0
	}
	if t.node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		return t.node.Line
	}
	return t.node.Line + 1 + max(0, e.Line(strings.Split(t.node.Value, "\n")))
}

// texts are those of fleet.yaml and of the values files that it names.
func (d *Draft) texts(fsys fs.FS) []text {
	var out []text
	collect(fsys, d.Config, "", &out)
	for _, t := range out {
		if above := path.Base(strings.ReplaceAll(t.path, ".", "/")); strings.HasPrefix(above, valuesKey+"[") {
			collect(fsys, path.Join(d.Path, t.node.Value), strings.TrimSuffix(valuesPath, "."), &out)
		}
	}
	return out
}

// collect adds the texts of a file. One that cannot be read has none.
func collect(fsys fs.FS, file, at string, out *[]text) {
	data, err := fs.ReadFile(fsys, file)
	var document yaml.Node
	if err != nil || yaml.Unmarshal(data, &document) != nil {
		return
	}
	const deepest = 100 // aliases may lead back
	var below func(n *yaml.Node, at string, depth int)
	below = func(n *yaml.Node, at string, depth int) {
		if depth > deepest {
			return
		}
		switch n.Kind {
		case yaml.DocumentNode:
			for _, child := range n.Content {
				below(child, at, depth+1)
			}
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				name := strings.TrimPrefix(at+"."+n.Content[i].Value, ".")
				*out = append(*out, text{file, name, n.Content[i]})
				below(n.Content[i+1], name, depth+1)
			}
		case yaml.SequenceNode:
			for i, child := range n.Content {
				below(child, at+"["+strconv.Itoa(i)+"]", depth+1)
			}
		case yaml.ScalarNode:
			*out = append(*out, text{file, at, n})
		}
	}
	below(&document, at, 0)
}
