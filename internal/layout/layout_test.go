package layout

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/flotilla-sh/flotilla/"

// line is the order of the packages: one imports only what stands above it. A
// name stands for its sub-packages too, which may import each other.
var line = []string{
	"pkg/apis/fleet/v1alpha1",
	"pkg/fleetyaml",
	"charts",
	"docs/reference",
	"internal/digest",
	"internal/names",
	"internal/fault",
	"internal/hook",
	"internal/source",
	"internal/templating",
	"internal/bundle",
	"internal/render",
	"internal/charts",
	"internal/content",
	"internal/effect",
	"internal/target",
	"internal/deployment",
	"internal/status",
	"internal/apply",
	"internal/observe",
	"internal/downstream",
	"internal/pipeline",
	"internal/lint",
	"internal/reconcile",
	"internal/hub",
	"internal/agent",
	"internal/lab",
	"internal/apireq",
	"internal/faultproxy",
	"internal/memapi",
	"internal/soak",
	"internal/bench",
	"internal/demo",
	"internal/cli",
	"internal/docgen",
	"internal/layout",
	"cmd",
	"examples",
	"e2e",
}

// pure packages decide; they reach for nothing outside.
var pure = []string{
	"pkg/apis", "pkg/fleetyaml", "internal/digest", "internal/names", "internal/fault", "internal/hook", "internal/bundle",
	"internal/templating", "internal/effect", "internal/target", "internal/deployment", "internal/status",
}

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

type pkg struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
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
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		place := placeOf(name)
		if place < 0 {
			t.Errorf("%s stands nowhere in the line: give it a place", name)
			continue
		}
		for _, imported := range p.Imports {
			check(t, name, place, imported)
		}
	}
}

func check(t *testing.T, name string, place int, imported string) {
	t.Helper()
	if own, ok := strings.CutPrefix(imported, module); ok {
		if at := placeOf(own); at > place {
			t.Errorf("%s imports %s, which stands below it", name, own)
		}
		if side := "internal/agent"; under(name, "internal/hub") && under(own, side) || under(name, side) && under(own, "internal/hub") {
			t.Errorf("%s imports %s: hub and agent never import each other", name, own)
		}
		return
	}
	if slices.ContainsFunc(pure, func(p string) bool { return under(name, p) }) {
		for _, forbidden := range outside {
			if imported == forbidden || strings.Contains(forbidden, ".") && under(imported, forbidden) {
				t.Errorf("%s is pure, and imports %s", name, imported)
			}
		}
	}
	for library, allowed := range doors {
		if under(imported, library) && !slices.ContainsFunc(allowed, func(a string) bool { return under(name, a) }) {
			t.Errorf("%s imports %s; its door is %s", name, imported, strings.Join(allowed, ", "))
		}
	}
}

// placeOf returns the place of the longest name in the line that stands for a
// package.
func placeOf(name string) int {
	place, longest := -1, 0
	for i, entry := range line {
		if under(name, entry) && len(entry) > longest {
			place, longest = i, len(entry)
		}
	}
	return place
}

// under tells whether a path is root or below it.
func under(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}
