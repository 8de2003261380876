package layout

import (
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

const (
	isPure       = "pure"
	isController = "controller"
)

// place is one line of the map.
type place struct {
	name string
	// top counts the packages that are not within another, from above.
	top  int
	mark string
}

// atlas is the map by the names of packages.
type atlas map[string]place

// readMap reads the map from the package's comment.
func readMap(t *testing.T) atlas {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	known, within, top := atlas{}, []string{}, -1
	for _, line := range strings.Split(file.Doc.Text(), "\n") {
		entry, ok := strings.CutPrefix(line, "\t")
		if !ok {
			continue
		}
		name, says, ok := strings.Cut(strings.TrimLeft(entry, " "), "  ")
		depth := (len(entry) - len(strings.TrimLeft(entry, " "))) / 2
		if says = strings.TrimLeft(says, " "); !ok || says == "" || depth > len(within) {
			t.Fatalf("%q is no line of the map: a package and what it does, two spaces apart", line)
		}
		if depth == 0 {
			top++
		}
		within = append(within[:depth], name)
		p := place{name: strings.Join(within, ""), top: top}
		if mark, _, marked := strings.Cut(says, ": "); marked && slices.Contains([]string{isPure, isController}, mark) {
			p.mark = mark
		}
		known[p.name] = p
	}
	return known
}

// is tells whether a package has a mark.
func (a atlas) is(name, mark string) bool { return a[name].mark == mark }
