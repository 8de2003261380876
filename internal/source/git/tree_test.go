package git_test

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
)

func TestTreeIsAFileSystem(t *testing.T) {
	s := newSite(t)
	s.Write("b/c/d.yaml", "d")
	s.Write("b.yaml", "b")
	tree := fetch(t, newCache(t), s.remote(), s.Push("b/e.yaml", ""))
	if err := fstest.TestFS(tree.FS, "app/cm.yaml", "b/c/d.yaml", "b.yaml", "b/e.yaml"); err != nil {
		t.Error(err)
	}
}

func TestTreeLinksAndSubmodules(t *testing.T) {
	s := newSite(t)
	for link, target := range map[string]string{
		"app/file":     "cm.yaml",
		"up/over":      "../app/cm.yaml",
		"dir":          "app",
		"chain":        "dir/file",
		"out":          "../../etc/passwd",
		"sneaky":       "app/../../etc/passwd",
		"absolute":     "/etc/passwd",
		"nothing":      "absent",
		"circle":       "circle",
		"up/root":      "..",
		"app/deep/esc": "../../../x",
	} {
		path := filepath.Join(s.Work, link)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
	}
	s.Git("update-index", "--add", "--cacheinfo", "160000,"+s.first+",module")
	s.Git("add", "--all", "--", ":!module")
	s.Git("commit", "--quiet", "--message", "links")
	s.Git("push", "--quiet", "origin", "HEAD")
	tree := sync(t, newCache(t), s.remote())

	for _, path := range []string{"app/file", "up/over", "dir/cm.yaml", "chain", "up/root/app/cm.yaml"} {
		wantFile(t, tree, path, "v: 1\n")
	}
	for _, path := range []string{"out", "sneaky", "absolute", "app/deep/esc"} {
		_, err := fs.ReadFile(tree.FS, path)
		complaint{fault.Stalled, "SymlinkEscapes", []string{path, "leads out of the repository"}}.check(t, err)
	}
	for _, path := range []string{"nothing", "module", "module/x", "app/cm.yaml/x"} {
		if _, err := fs.Stat(tree.FS, path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := fs.Stat(tree.FS, "circle"); err == nil || !strings.Contains(err.Error(), "too many symbolic links") {
		t.Errorf("circle: %v", err)
	}

	var files, links []string
	err := fs.WalkDir(tree.FS, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Type() == fs.ModeSymlink:
			links = append(links, path)
		case !d.IsDir():
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"app/cm.yaml", "app/file", "chain", "up/over"}; !slices.Equal(files, want) {
		t.Errorf("files %v, want %v", files, want)
	}
	if want := []string{"absolute", "app/deep/esc", "circle", "dir", "nothing", "out", "sneaky", "up/root"}; !slices.Equal(links, want) {
		t.Errorf("links %v, want %v", links, want)
	}
}
