package layout

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/flotilla-sh/flotilla/"

// outside is what a pure package must not import.
var outside = []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "os", "net", "net/http", "os/exec"}

// doors are libraries and the only packages that may import them.
var doors = map[string][]string{
	"github.com/go-git/go-git": {"internal/source/git"},
	"helm.sh/helm/v3":          {"internal/render/helm", "internal/source/chart", "internal/lab", "internal/bench"},
	"sigs.k8s.io/kustomize":    {"internal/render/kustomize", "internal/render/raw"},
	"github.com/fluxcd":        {"internal/apply", "internal/observe"},
	"oras.land/oras-go":        {"internal/content/registry", "internal/source/chart"},
}

// strangers are libraries that no package of ours brings into a program: the
// agent is to be small.
var strangers = map[string][]string{
	"cmd/flotilla-agent": {"sigs.k8s.io/controller-runtime", "github.com/go-git/go-git"},
}

type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = "../.."
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var all []pkg
	for decoder := json.NewDecoder(out); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if err := cmd.Wait(); err != nil || len(all) == 0 {
		t.Fatalf("go list: %v, %d packages", err, len(all))
	}
	return all
}

func TestImports(t *testing.T) {
	known, seen := readMap(t), map[string]bool{}
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if known[name].name == "" {
			t.Errorf("%s is not on the map: give it a line in doc.go, below what it imports", name)
			continue
		}
		for dir := name; dir != "."; dir = path.Dir(dir) {
			seen[dir] = true
		}
		for _, imported := range p.Imports {
			known.check(t, name, imported)
		}
	}
	for name := range known {
		if !seen[name] {
			t.Errorf("%s is on the map, and is no package: take its line out of doc.go", name)
		}
	}
}

func TestStrangers(t *testing.T) {
	all := packages(t)
	for _, program := range all {
		for _, library := range strangers[strings.TrimPrefix(program.ImportPath, module)] {
			for _, p := range all {
				within := p.ImportPath == program.ImportPath || slices.Contains(program.Deps, p.ImportPath)
				if within && slices.ContainsFunc(p.Imports, func(i string) bool { return under(i, library) }) {
					t.Errorf("%s is in %s and imports %s", p.ImportPath, program.ImportPath, library)
				}
			}
		}
	}
}

func (a atlas) check(t *testing.T, name, imported string) {
	t.Helper()
	if own, ok := strings.CutPrefix(imported, module); ok {
		a.checkOwn(t, name, own)
		return
	}
	if a.is(name, isPure) {
		for _, forbidden := range outside {
			if imported == forbidden || strings.Contains(forbidden, ".") && under(imported, forbidden) {
				t.Errorf("%s is pure, and imports %s", name, imported)
			}
		}
	}
	for library, allowed := range doors {
		if under(imported, library) && !slices.ContainsFunc(allowed, func(d string) bool { return under(name, d) }) {
			t.Errorf("%s imports %s; its door is %s", name, imported, strings.Join(allowed, ", "))
		}
	}
}

// checkOwn looks at one package that imports another of ours.
func (a atlas) checkOwn(t *testing.T, name, own string) {
	t.Helper()
	if a[own].top > a[name].top {
		t.Errorf("%s imports %s, which stands below it", name, own)
	}
	if side := "internal/agent"; under(name, "internal/hub") && under(own, side) || under(name, side) && under(own, "internal/hub") {
		t.Errorf("%s imports %s: hub and agent never import each other", name, own)
	}
	if a.is(name, isController) && a.is(own, isController) {
		t.Errorf("%s imports %s: both are controllers, which talk through the status of objects", name, own)
	}
}

// under tells whether a name is root or below it.
func under(name, root string) bool {
	return name == root || strings.HasPrefix(name, root+"/")
}
