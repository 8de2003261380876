// Package rendertest gives tests of rendering their input.
package rendertest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/render/helm"
	"github.com/flotilla-sh/flotilla/internal/source"
)

// Chart returns the files of a packaged chart of a public project, by the
// beginning of its file name. The charts lie beside the repository; where they
// do not, the test is skipped.
func Chart(t testing.TB, name string) []source.File {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(here), "../../../../shared/charts")
	found, err := filepath.Glob(filepath.Join(dir, name+"-[0-9v]*.tgz"))
	if err != nil || len(found) != 1 {
		t.Skipf("the chart %s is not in shared/charts beside the repository (found %d): what it would test is not tested", name, len(found))
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	files, err := helm.LoadArchive(found[0], data)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(files, func(a, b source.File) int { return strings.Compare(a.Path, b.Path) })
	return files
}

// Files returns files from a text: "-- path --" lines begin a file, as in
// txtar archives.
func Files(text string) []source.File {
	var files []source.File
	for line := range strings.Lines(text) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "-- "); ok && strings.HasSuffix(path, " --") {
			files = append(files, source.File{Path: strings.TrimSuffix(path, " --")})
			continue
		}
		if len(files) > 0 {
			last := &files[len(files)-1]
			last.Data = append(last.Data, line...)
		}
	}
	slices.SortFunc(files, func(a, b source.File) int { return strings.Compare(a.Path, b.Path) })
	return files
}

// Object returns an object as a render returns it, by its JSON.
func Object(t testing.TB, raw []byte) render.Object {
	t.Helper()
	var meta metav1.PartialObjectMetadata
	if err := json.Unmarshal(raw, &meta); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return render.Object{
		JSON: raw, APIVersion: meta.APIVersion, Kind: meta.Kind, Namespace: meta.Namespace, Name: meta.Name,
	}
}

// Write writes files into a directory, for programs that read them there.
func Write(t testing.TB, dir string, files []source.File) {
	t.Helper()
	for _, file := range files {
		name := filepath.Join(dir, filepath.FromSlash(file.Path))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, file.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
