package bundle

import (
	"bytes"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-sh/flotilla/internal/render/rendertest"
	"github.com/flotilla-sh/flotilla/internal/source"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func FuzzIgnore(f *testing.F) {
	for _, seed := range []string{
		"", "# comment\n\\#name\n", "*.yaml\ndir/*\ndir/\n", "a b \\ \n", "[a-\n", "!x\n**/y\n/z\na/b/*\n", "\r\n\t\n", "\\", "a\\ \\ ", "/*", "//",
	} {
		f.Add([]byte(seed), "a.yaml")
	}
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		patterns, err := ignores{}.with(data, ".fleetignore")
		if err != nil && !strings.HasPrefix(err.Error(), ".fleetignore:") {
			t.Errorf("an error without a place: %v", err)
		}
		patterns.match(name)
		patterns.matchContents(name)
		more, err := patterns.with(data, "sub/.fleetignore")
		if err == nil && patterns.match(name) && !more.match(name) {
			t.Errorf("%q is ignored above and not below", name)
		}
		for _, warning := range ignoreWarnings(data, ".fleetignore") {
			if warning.File != ".fleetignore" || warning.Line < 1 {
				t.Errorf("a warning without a place: %v", warning)
			}
		}
	})
}

// FuzzScan reads repositories that are given as one text, in the form of txtar.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		"-- fleet.yaml --\nname: web\nhelm: {valuesFiles: [values.yaml]}\n-- values.yaml --\na: 1\n-- a.yaml --\nkind: x\n",
		"-- x/fleet.yaml --\n-- x/fleet.yml --\n-- x/y/fleet.yaml --\nname: x\n-- x/y/a.yaml --\n-- b.yml --\n",
		"-- .fleetignore --\n*.txt\nx/*\n-- a.txt --\n-- x/a.yaml --\n-- y/x/b.yaml --\n-- y/.fleetignore --\n[\n",
		"-- x/dev.yaml --\nnamespace: dev\n-- x/kustomization.yaml --\nresources: [a.yaml]\n-- x/a.yaml --\n",
		"-- .github/a.yaml --\n-- Chart.yaml --\nname: c\n-- templates/a.yaml --\n-- charts/b/Chart.yaml --\n",
	} {
		f.Add([]byte(seed), "/", "")
		f.Add([]byte(seed), "x*", "")
		f.Add([]byte(seed), "x", "dev.yaml")
	}
	f.Fuzz(func(t *testing.T, text []byte, where, options string) {
		files := fstest.MapFS{}
		for _, file := range rendertest.Files(string(text)) {
			if fs.ValidPath(file.Path) && file.Path != "." {
				files[file.Path] = &fstest.MapFile{Data: file.Data}
			}
		}
		tree := source.Tree{Commit: "abc", FS: files}
		for _, in := range []Input{
			{RepoName: "repo", Paths: []string{where}},
			{RepoName: "repo", Bundles: []fleet.BundlePath{{Base: where, Options: options}, {Base: where}}},
		} {
			checkScan(t, tree, in)
		}
	})
}

func checkScan(t *testing.T, tree source.Tree, in Input) {
	t.Helper()
	first, err := Scan(tree, in)
	if err == nil && len(first) == 0 {
		t.Error("neither a bundle nor an error")
	}
	second, _ := Scan(tree, in)
	if diff := cmp.Diff(show(first), show(second)); diff != "" {
		t.Errorf("two scans differ: %s", diff)
	}
	for _, draft := range first {
		if draft.Err != nil {
			continue
		}
		if draft.Name == "" || draft.SourceDigest != source.Digest(draft.Files) {
			t.Errorf("a bundle without a name or with a wrong digest: %+v", draft)
		}
		if !slices.IsSortedFunc(draft.Files, func(a, b source.File) int { return strings.Compare(a.Path, b.Path) }) {
			t.Errorf("files are not sorted: %v", show(first))
		}
		for _, file := range draft.Files {
			data, err := fs.ReadFile(tree.FS, strings.TrimPrefix(draft.Path+"/"+file.Path, "./"))
			if err != nil || !bytes.Equal(data, file.Data) {
				t.Errorf("%s of %s is not what lies there: %v", file.Path, draft.Path, err)
			}
		}
	}
}
