package dir_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/source/dir"
)

func write(t *testing.T, root, path, content string) {
	t.Helper()
	full := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, root string) source.Tree {
	t.Helper()
	tree, err := dir.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestTreeIsAFileSystem(t *testing.T) {
	root := t.TempDir()
	write(t, root, "app/cm.yaml", "v: 1\n")
	write(t, root, "b", "b")
	if err := fstest.TestFS(open(t, root).FS, "app/cm.yaml", "b"); err != nil {
		t.Error(err)
	}
}

func TestTreeLooksLikeACommit(t *testing.T) {
	root := t.TempDir()
	write(t, root, "app/cm.yaml", "v: 1\n")
	write(t, root, ".git/config", "x")
	write(t, root, "vendored/.git", "x")
	for link, target := range map[string]string{
		"file": "app/cm.yaml", "dir": "app", "out": "../../../etc/passwd", "absolute": "/etc/passwd", "nothing": "absent",
	} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	tree := open(t, root)
	for _, path := range []string{"file", "dir/cm.yaml"} {
		if data, err := fs.ReadFile(tree.FS, path); err != nil || string(data) != "v: 1\n" {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
	for _, path := range []string{"out", "absolute"} {
		_, err := fs.ReadFile(tree.FS, path)
		if fault.KindOf(err) != fault.Stalled || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{".git/config", ".git", "vendored/.git", "nothing"} {
		if _, err := fs.Stat(tree.FS, path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
	var files []string
	err := fs.WalkDir(tree.FS, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if want := []string{"app/cm.yaml", "file"}; err != nil || !slices.Equal(files, want) {
		t.Errorf("files %v, %v", files, err)
	}
}

func TestCommitIsADigest(t *testing.T) {
	seen := map[string]string{}
	for name, files := range map[string]map[string]string{
		"empty":        {},
		"one":          {"a": "1"},
		"content":      {"a": "2"},
		"name":         {"b": "1"},
		"two":          {"a": "1", "b": ""},
		"run together": {"a": "1b"},
	} {
		root, again := t.TempDir(), t.TempDir()
		for path, content := range files {
			write(t, root, path, content)
			write(t, again, path, content)
		}
		sum := open(t, root).Commit
		if other, ok := seen[sum]; ok || len(sum) != 64 || sum != open(t, again).Commit {
			t.Errorf("%s has the digest %s of %s", name, sum, other)
		}
		seen[sum] = name
	}
}

func TestOpenComplains(t *testing.T) {
	root := t.TempDir()
	write(t, root, "file", "x")
	for path, want := range map[string]string{"absent": "no such file", "file": "give the directory"} {
		_, err := dir.Open(filepath.Join(root, path))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
