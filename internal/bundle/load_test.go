package bundle

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-sh/flotilla/internal/source"
)

func TestFleetIgnore(t *testing.T) {
	for name, tt := range map[string]struct {
		ignore string
		want   []string
	}{
		"nothing":            {"# comment\\n\\n", []string{"a.yaml", "b.txt", "x/a.yaml", "x/dir/c.yaml", "x/dir/deep/d.yaml"}},
		"name at any depth":  {"a.yaml", []string{"b.txt", "x/dir/c.yaml", "x/dir/deep/d.yaml"}},
		"pattern":            {"*.yaml", []string{"b.txt"}},
		"directory":          {"dir", []string{"a.yaml", "b.txt", "x/a.yaml"}},
		"directory, slash":   {"dir/", []string{"a.yaml", "b.txt", "x/a.yaml"}},
		"contents":           {"dir/*", []string{"a.yaml", "b.txt", "x/a.yaml"}},
		"blanks at the end":  {"b.txt  ", []string{"a.yaml", "x/a.yaml", "x/dir/c.yaml", "x/dir/deep/d.yaml"}},
		"escaped blank":      {`b.txt\ `, []string{"a.yaml", "b.txt", "x/a.yaml", "x/dir/c.yaml", "x/dir/deep/d.yaml"}},
		"Windows line break": {"b.txt\r", []string{"a.yaml", "x/a.yaml", "x/dir/c.yaml", "x/dir/deep/d.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := tree("a.yaml:\nb.txt: x\nx/a.yaml:\nx/dir/c.yaml:\nx/dir/deep/d.yaml:")
			files.FS.(fstest.MapFS)[".fleetignore"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(tt.ignore, `\n`, "\n"))}
			if diff := cmp.Diff(tt.want, filesOf(t, files)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestIgnoreFilesOfSiblingsDoNotInterfere(t *testing.T) {
	got := filesOf(t, tree("x/.fleetignore: a.yaml\nx/a.yaml:\nx/b.yaml:\nx/z/a.yaml:\ny/a.yaml:\ny/.fleetignore: b.yaml\ny/b.yaml:"))
	if diff := cmp.Diff([]string{"x/b.yaml", "y/a.yaml"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestEscapedHash(t *testing.T) {
	got := filesOf(t, tree(".fleetignore: \\#a.yaml\n#a.yaml:\nb.yaml:"))
	if diff := cmp.Diff([]string{"b.yaml"}, got); diff != "" {
		t.Error(diff)
	}
}

func filesOf(t *testing.T, files source.Tree) []string {
	t.Helper()
	drafts, err := Scan(files, Input{RepoName: "repo"})
	if err != nil || len(drafts) != 1 || drafts[0].Err != nil {
		t.Fatalf("%+v, %v", drafts, err)
	}
	var out []string
	for _, f := range drafts[0].Files {
		out = append(out, f.Path)
	}
	return out
}

func TestIgnoreLinesThatDoNothing(t *testing.T) {
	drafts, _ := Scan(tree("x/.fleetignore: !a.yaml\\n**/b.yaml\\ndocs/**\\n/c.yaml\\nsub/d.yaml\\n*.txt\\ndir/*\\ndir/\nx/a.yaml:"), Input{RepoName: "repo"})
	want := []string{
		`x/.fleetignore:1: "!a.yaml" ignores nothing: nothing can be taken back with !`,
		`x/.fleetignore:2: "**/b.yaml" ignores nothing: ** is not known`,
		`x/.fleetignore:3: "docs/**" ignores nothing: ** is not known`,
		`x/.fleetignore:4: "/c.yaml" ignores nothing: patterns are names and not paths; put "c.yaml" into the .fleetignore of its directory`,
		`x/.fleetignore:5: "sub/d.yaml" ignores nothing: patterns are names and not paths; put "d.yaml" into the .fleetignore of its directory`,
	}
	if len(drafts) != 1 || len(drafts[0].Warnings) != len(want) {
		t.Fatalf("got %+v", drafts)
	}
	for i := range want {
		if !strings.HasPrefix(drafts[0].Warnings[i].String(), want[i]) {
			t.Errorf("got %s, want %s", drafts[0].Warnings[i], want[i])
		}
	}
}

func TestBadIgnorePattern(t *testing.T) {
	drafts, _ := Scan(tree("x/.fleetignore: ok\\n[a\nx/a.yaml:"), Input{RepoName: "repo"})
	const want = `x/.fleetignore:2: "[a" is not a valid pattern`
	if len(drafts) != 1 || drafts[0].Err == nil || !strings.HasPrefix(drafts[0].Err.Error(), want) {
		t.Errorf("got %v, want %s", show(drafts), want)
	}
}

func TestLinks(t *testing.T) {
	link := func(to string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink | 0o777}
	}
	for name, tt := range map[string]struct {
		to   string
		want string
	}{
		"to a file":             {"common.txt", "x repo-x [a.yaml common.txt link]"},
		"to a directory":        {"../shared", "x repo-x [a.yaml common.txt link/s.yaml]"},
		"to nowhere":            {"nowhere", "x repo-x ! x/link is a link that leads out of the repository or nowhere"},
		"out of the repository": {"../../etc", "x repo-x ! x/link is a link that leads out of the repository or nowhere"},
		"back up":               {"../x", "x repo-x ! "},
	} {
		t.Run(name, func(t *testing.T) {
			files := tree("x/fleet.yaml: {}\nx/a.yaml:\nx/common.txt: x\nshared/s.yaml:")
			files.FS.(fstest.MapFS)["x/link"] = link(tt.to)
			drafts, err := Scan(files, Input{RepoName: "repo", Paths: []string{"x"}})
			if err != nil || len(drafts) != 1 || !strings.HasPrefix(show(drafts)[0], tt.want) {
				t.Errorf("got %v, %v; want %s", show(drafts), err, tt.want)
			}
		})
	}
}
