package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// tree makes a snapshot of files given as a text: "name: content" lines, where
// an empty content is a small manifest and \n stands for a new line.
func tree(files string) source.Tree {
	out := fstest.MapFS{}
	for line := range strings.Lines(files) {
		name, content, _ := strings.Cut(strings.TrimSpace(line), ": ")
		name = strings.TrimSuffix(name, ":")
		if name == "" {
			continue
		}
		if content == "" {
			content = "kind: ConfigMap"
		}
		out[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(content, `\n`, "\n"))}
	}
	return source.Tree{Commit: "abc", FS: out}
}

// show prints drafts as "path name [files]", or with the error.
func show(drafts []Draft) []string {
	var out []string
	for _, d := range drafts {
		if d.Err != nil {
			out = append(out, fmt.Sprintf("%s %s ! %s", d.Path, d.Name, d.Err))
			continue
		}
		var files []string
		for _, f := range d.Files {
			files = append(files, f.Path)
		}
		out = append(out, fmt.Sprintf("%s %s %v", d.Path, d.Name, files))
	}
	return out
}

func TestScan(t *testing.T) {
	for name, tt := range map[string]struct {
		files string
		in    Input
		want  []string
		// err is part of the error of the whole scan.
		err string
	}{
		"plain YAML at the root": {
			files: "a.yaml:\nREADME.md: x",
			want:  []string{". repo [README.md a.yaml]"},
		},
		"YAML anywhere below makes the path a bundle": {
			files: "x/deep/down/a.yml:\nx/README.md: x",
			in:    Input{Paths: []string{"x"}},
			want:  []string{"x repo-x [README.md deep/down/a.yml]"},
		},
		"a nested bundle takes its files with it": {
			files: "a.yaml:\nx/fleet.yaml: name: nested\nx/b.yaml:\nx/y/c.yaml:",
			want:  []string{". repo [a.yaml]", "x nested [b.yaml y/c.yaml]"},
		},
		"only nested bundles": {
			files: "x/fleet.yml: {}\nx/b.yaml:\ny/fleet.yaml: {}\ny/b.yaml:\nREADME.md: x",
			want:  []string{"x repo-x [b.yaml]", "y repo-y [b.yaml]"},
		},
		"fleet.yaml of the path and below": {
			files: "x/fleet.yaml: {}\nx/a.txt: x\nx/y/fleet.yaml: {}\nx/y/b.yaml:",
			in:    Input{Paths: []string{"/x/"}},
			want:  []string{"x repo-x [a.txt]", "x/y repo-x-y [b.yaml]"},
		},
		"a kustomization may reach into nested bundles": {
			files: "fleet.yaml: {}\nkustomization.yaml: resources: [x]\nx/fleet.yaml: {}\nx/b.yaml:",
			want:  []string{". repo [kustomization.yaml x/b.yaml x/fleet.yaml]", "x repo-x [b.yaml]"},
		},
		"a chart keeps all its files": {
			files: "fleet.yaml: {}\nChart.yaml: name: c\ntemplates/a.yaml:\nx/fleet.yaml: {}\nx/b.yaml:\n.helmignore: x",
			want:  []string{". repo [.helmignore Chart.yaml templates/a.yaml x/b.yaml x/fleet.yaml]", "x repo-x [b.yaml]"},
		},
		"pattern": {
			files: "apps/a/x.yaml:\napps/b/x.yaml:\napps/b.yaml:\nother/x.yaml:",
			in:    Input{Paths: []string{"apps/*"}},
			want:  []string{"apps/a repo-apps-a [x.yaml]", "apps/b repo-apps-b [x.yaml]"},
		},
		"a directory named like a pattern": {
			files: "a[1]/x.yaml:\na1/x.yaml:",
			in:    Input{Paths: []string{"a[1]"}},
			want:  []string{"a[1] repo-a-1-2cc0eb4d [x.yaml]"},
		},
		"paths that overlap": {
			files: "x/a.yaml:\nx/y/fleet.yaml: {}\nx/y/b.yaml:",
			in:    Input{Paths: []string{"x", "x/y", "x"}},
			want:  []string{"x repo-x [a.yaml]", "x/y repo-x-y [b.yaml]"},
		},
		"hidden files": {
			files: "a.yaml:\n.hidden.yaml:\n.github/w.yaml:\nx/.y/b.yaml:",
			want:  []string{". repo [a.yaml]"},
		},
		"a hidden path can be given": {
			files: ".deploy/a.yaml:",
			in:    Input{Paths: []string{".deploy"}},
			want:  []string{".deploy repo-deploy-b33b68d9 [a.yaml]"},
		},
		"hidden YAML makes no bundle": {
			files: ".github/w.yaml:\nREADME.md: x",
			err:   "no resource found at the following paths to deploy: /",
		},
		"a nested bundle without resources is left out": {
			files: "a.yaml:\nx/fleet.yaml: {}",
			want:  []string{". repo [a.yaml]"},
		},
		"a chart from elsewhere needs no files": {
			files: "x/fleet.yaml: helm: {repo: https://example.com, chart: web}",
			want:  []string{"x repo-x []"},
		},
		"a broken directory and its neighbours": {
			files: "x/fleet.yaml: name: broken\\nhelm: []\nx/a.yaml:\ny/fleet.yaml: {}\ny/a.yaml:",
			want:  []string{`x broken ! x/fleet.yaml:2: "helm" must be an object, not a list`, "y repo-y [a.yaml]"},
		},
		"two bundles of one name": {
			files: "x/fleet.yaml: name: web\nx/a.yaml:\ny/fleet.yaml: name: web\ny/a.yaml:\nz/fleet.yaml: {}\nz/a.yaml:",
			want: []string{
				`x web ! the directories "x", "y" all make a bundle named "web"; set another name in the fleet.yaml of all but one`,
				`y web ! the directories "x", "y" all make a bundle named "web"; set another name in the fleet.yaml of all but one`,
				"z repo-z [a.yaml]",
			},
		},
		"no such path": {
			files: "apps/web/a.yaml:\napps/api/a.yaml:\nb.yaml:",
			in:    Input{Paths: []string{"apps/wbe", "apps/api"}},
			want:  []string{"apps/api repo-apps-api [a.yaml]"},
			err:   `path "apps/wbe" matches no directory at commit abc; did you mean "apps/web"?`,
		},
		"no such path, nothing near": {
			files: "apps/web/a.yaml:\ninfra/a.yaml:",
			in:    Input{Paths: []string{"completely/else"}},
			err:   `path "completely/else" matches no directory at commit abc; the repository has apps, infra`,
		},
		"pattern without a match": {
			files: "apps/web/a.yaml:",
			in:    Input{Paths: []string{"apps/x*"}},
			err:   `path "apps/x*" matches no directory at commit abc; "apps" has web`,
		},
		"bad pattern": {
			files: "apps/web/a.yaml:",
			in:    Input{Paths: []string{"apps/[x"}},
			err:   `path "apps/[x" is not a valid pattern`,
		},
		"path out of the repository": {
			files: "a.yaml:",
			in:    Input{Paths: []string{"../other"}},
			err:   `path "../other" leads out of the repository`,
		},
		"path of a file": {
			files: "x/a.yaml:",
			in:    Input{Paths: []string{"x/a.yaml"}},
			err:   `path "x/a.yaml" is a file; give its directory "x"`,
		},
		"path without YAML": {
			files: "docs/README.md: x\na.yaml:",
			in:    Input{Paths: []string{"docs"}},
			err:   "no resource found at the following paths to deploy: docs; a bundle is a directory with a fleet.yaml or with Kubernetes YAML files",
		},
		"empty repository": {
			err: "commit abc of the repository has no files; commit and push something to deploy",
		},
		"driven scan": {
			files: "x/dev.yaml: namespace: dev\nx/prod.yaml: namespace: prod\nx/kustomization.yaml: {}\nx/y/fleet.yaml: {}\nx/y/b.yaml:",
			in: Input{Bundles: []fleet.BundlePath{
				{Base: "x", Options: "dev.yaml"}, {Base: "/x", Options: "prod.yaml"}, {Base: "x/y"},
			}},
			want: []string{
				"x repo-x-dev [kustomization.yaml y/b.yaml y/fleet.yaml]",
				"x repo-x-prod [kustomization.yaml y/b.yaml y/fleet.yaml]",
				"x/y repo-x-y [b.yaml]",
			},
		},
		"driven scan, an entry twice": {
			files: "x/dev.yaml: namespace: dev\nx/a.yaml:",
			in:    Input{Bundles: []fleet.BundlePath{{Base: "x", Options: "dev.yaml"}, {Base: "/x/", Options: "./dev.yaml"}}},
			want:  []string{"x repo-x-dev [a.yaml]"},
		},
		"driven scan, a file below": {
			files: "x/fleet.yaml: nonsense: 1\nx/envs/dev/fleet.yaml: namespace: dev\nx/envs/dev/b.yaml:\nx/a.yaml:",
			in:    Input{Bundles: []fleet.BundlePath{{Base: "x", Options: "envs/dev/fleet.yaml"}}},
			want:  []string{"x repo-x-envs-dev-fleet [a.yaml envs/dev/b.yaml]"},
		},
		"driven scan, files below": {
			files: "x/envs/dev/fleet.yaml: namespace: dev\nx/envs/dev/b.yaml:\nx/envs/prod/fleet.yaml: namespace: prod\nx/envs/prod/b.yaml:\nx/a.yaml:",
			in:    Input{Bundles: []fleet.BundlePath{{Base: "x", Options: "envs/dev/fleet.yaml"}, {Base: "x", Options: "envs/prod/fleet.yaml"}}},
			want:  []string{"x repo-x-envs-dev-fleet [a.yaml envs/dev/b.yaml]", "x repo-x-envs-prod-fleet [a.yaml envs/prod/b.yaml]"},
		},
		"driven scan, missing things": {
			files: "x/a.yaml:",
			in:    Input{Bundles: []fleet.BundlePath{{Base: "x", Options: "dev.yaml"}, {Base: "y"}}},
			want: []string{
				"x repo-x-dev ! the options file x/dev.yaml does not exist",
				`y repo-y ! path "y" matches no directory at commit abc; did you mean "x"?`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.in.RepoName = "repo"
			drafts, err := Scan(tree(tt.files), tt.in)
			if diff := cmp.Diff(tt.want, show(drafts)); diff != "" {
				t.Error(diff)
			}
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("got error %v, want %q", err, tt.err)
			}
			for _, err := range slices.Concat([]error{err}, errorsOf(drafts)) {
				if err != nil && fault.KindOf(err) != fault.Stalled {
					t.Errorf("not stalled: %v", err)
				}
			}
		})
	}
}

func errorsOf(drafts []Draft) []error {
	var errs []error
	for _, d := range drafts {
		errs = append(errs, d.Err)
	}
	return errs
}

func TestStrictMakesErrorsOfWarnings(t *testing.T) {
	files := tree("fleet.yaml: nmae: x\na.yaml:")
	const want = `fleet.yaml:1: unknown field "nmae", did you mean "name"?`
	drafts, err := Scan(files, Input{RepoName: "repo"})
	if err != nil || drafts[0].Err != nil || len(drafts[0].Warnings) != 1 || drafts[0].Warnings[0].String() != want {
		t.Errorf("lenient: %+v, %v", drafts, err)
	}
	drafts, err = Scan(files, Input{RepoName: "repo", Strict: true})
	if err != nil || drafts[0].Err == nil || drafts[0].Err.Error() != want {
		t.Errorf("strict: %+v, %v", drafts, err)
	}
}

func TestBothSpellingsOfFleetYAML(t *testing.T) {
	drafts, err := Scan(tree("x/fleet.yaml: name: a\nx/fleet.yml: name: b\nx/a.yaml:"), Input{RepoName: "repo"})
	const want = "x/fleet.yaml:1: fleet.yml lies beside it and is not read; delete one of them"
	if err != nil || len(drafts) != 1 || drafts[0].Name != "a" || len(drafts[0].Warnings) != 1 || drafts[0].Warnings[0].String() != want {
		t.Errorf("%+v, %v", drafts, err)
	}
}

func TestBundlesThatAreTooLarge(t *testing.T) {
	files := tree("a/fleet.yaml: {}\na/x.yaml: 12345678\nb/fleet.yaml: {}\nb/x.yaml: 1\nb/y.yaml: 123456\nc/fleet.yaml: {}\nc/x.yaml: 12")
	for limit, refused := range map[int64]string{0: "", 17: "", 10: "b"} {
		drafts, err := Scan(files, Input{RepoName: "repo", MaxBytes: limit})
		if err != nil || len(drafts) != 3 {
			t.Fatalf("limit %d: %v, %v", limit, show(drafts), err)
		}
		for _, d := range drafts {
			if (d.Err != nil) != (d.Path == refused) {
				t.Errorf("limit %d: %s has error %v", limit, d.Path, d.Err)
			}
		}
		const want = `the 2 files of the directory "b" have 7 bytes (the largest: b/y.yaml with 6), and with the bundles before it more than 10, `
		if refused == "b" && (!strings.Contains(drafts[1].Err.Error(), want) || !strings.Contains(drafts[1].Err.Error(), "--git-max-bundles-size") || fault.ReasonOf(drafts[1].Err, "") != "BundlesTooLarge") {
			t.Errorf("%v", drafts[1].Err)
		}
	}
}

// What is parsed needs many times its size; the files that configure a bundle
// are bounded before that, for that bundle alone.
func TestYAMLThatIsTooLargeToParse(t *testing.T) {
	big := "a: [" + strings.Repeat("1,", 700_000) + "1]"
	files := fstest.MapFS{
		"good/fleet.yaml":   {Data: []byte("namespace: x")},
		"good/a.yaml":       {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}")},
		"config/fleet.yaml": {Data: []byte(big)},
		"values/fleet.yaml": {Data: []byte("helm: {valuesFiles: [big.yaml]}")},
		"values/big.yaml":   {Data: []byte(big)},
	}
	drafts, err := Scan(source.Tree{FS: files}, Input{RepoName: "repo"})
	if err != nil {
		t.Fatal(err)
	}
	if len(drafts) != 3 {
		t.Fatalf("got %d drafts", len(drafts))
	}
	for _, d := range drafts {
		file := map[string]string{"repo-config": "config/fleet.yaml", "repo-values": "values/big.yaml"}[d.Name]
		if (d.Err != nil) != (file != "") || d.Err != nil && (fault.KindOf(d.Err) != fault.Stalled || !strings.Contains(d.Err.Error(), file) || !strings.Contains(d.Err.Error(), "1400")) {
			t.Errorf("%s: got %v", d.Name, d.Err)
		}
	}
}

func TestSourceDigest(t *testing.T) {
	digestOf := func(files string) string {
		drafts, err := Scan(tree(files), Input{RepoName: "repo"})
		if err != nil {
			t.Fatal(err)
		}
		return drafts[0].SourceDigest
	}
	base := digestOf("fleet.yaml: name: a\na.yaml: x")
	if base != digestOf("fleet.yaml: name: b\na.yaml: x") {
		t.Error("fleet.yaml is no part of the source")
	}
	if base == digestOf("a.yaml: y") || base == digestOf("b.yaml: x") {
		t.Error("names and contents are part of the source")
	}
}

// What cannot be read for a moment is not gone: a scan that met it is not one
// that says what is gone, whichever of its questions failed.
func TestWhatCannotBeReadIsNotGone(t *testing.T) {
	for _, paths := range [][]string{nil, {"apps"}, {"apps/*"}, {"*/web"}} {
		for _, name := range []string{"apps", "apps/web", "apps/web/fleet.yaml", "apps/web/fleet.yml"} {
			for question := range 12 {
				files := tree("apps/web/fleet.yaml: name: shop\napps/web/a.yaml:\napps/api/b.yaml:\napps/api/fleet.yaml: {}")
				in := Input{RepoName: "repo", Paths: paths}
				want, err := Scan(files, in)
				if err != nil {
					t.Fatal(err)
				}
				files.FS = &unreadable{MapFS: files.FS.(fstest.MapFS), name: name, at: question}
				got, err := Scan(files, in)
				if err != nil {
					if fault.KindOf(err) != fault.Transient {
						t.Errorf("%v %s at %d: %v is looked at never again", paths, name, question, err)
					}
					continue
				}
				if diff := cmp.Diff(show(want), show(got)); diff != "" && !slices.ContainsFunc(got, func(d Draft) bool { return d.Err != nil }) {
					t.Errorf("%v %s at %d, without an error: %s", paths, name, question, diff)
				}
			}
		}
	}
}

// A values file is told apart from one that is not there: nothing but a change
// of the commit mends that, while the other is looked at again.
func TestKindsOfErrorsOfValuesFiles(t *testing.T) {
	for name, tt := range map[string]struct {
		values, unreadable string
		question           int
		kind               fault.Kind
		reason             string
	}{
		"cannot be looked at":            {"[prod.yaml]", "apps/web/prod.yaml", 0, fault.Transient, reasonUnreadable},
		"cannot be read":                 {"[prod.yaml]", "apps/web/prod.yaml", 1, fault.Transient, reasonUnreadable},
		"cannot be read, another is bad": {"[none.yaml, prod.yaml]", "apps/web/prod.yaml", 1, fault.Transient, reasonUnreadable},
		"another file cannot be read":    {"[none.yaml]", "apps/web/a.yaml", 0, fault.Transient, reasonUnreadable},
		"named from above":               {"[web/prod.yaml]", "apps/web/prod.yaml", 0, fault.None, ""},
		"is not there":                   {"[none.yaml]", "", 0, fault.Stalled, reasonFleetYAML},
		"leads out":                      {"[../../../x.yaml]", "", 0, fault.Stalled, reasonFleetYAML},
		"is a directory":                 {"[dir]", "", 0, fault.Stalled, reasonFleetYAML},
		"is no YAML":                     {"[a.yaml]", "", 0, fault.Stalled, reasonFleetYAML},
	} {
		t.Run(name, func(t *testing.T) {
			files := tree("apps/web/fleet.yaml: {helm: {valuesFiles: " + tt.values + "}}\napps/web/prod.yaml: {a: 1}\napps/web/dir/x.txt: x\napps/web/a.yaml: [")
			files.FS = &unreadable{MapFS: files.FS.(fstest.MapFS), name: tt.unreadable, at: tt.question}
			drafts, err := Scan(files, Input{RepoName: "repo", Paths: []string{"apps/web"}})
			if err != nil || len(drafts) != 1 {
				t.Fatalf("got %d drafts, %v", len(drafts), err)
			}
			if err := drafts[0].Err; fault.KindOf(err) != tt.kind || fault.ReasonOf(err, "") != tt.reason {
				t.Errorf("kind %v, reason %q, want %v, %q: %v", fault.KindOf(err), fault.ReasonOf(err, ""), tt.kind, tt.reason, err)
			}
		})
	}
}

// unreadable is a file system that cannot answer one question about a name.
type unreadable struct {
	fstest.MapFS
	name string
	at   int
}

func (u *unreadable) ask(op, name string) error {
	if name != u.name {
		return nil
	}
	if u.at--; u.at != -1 {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: errors.New("too many open files")}
}

func (u *unreadable) Stat(name string) (fs.FileInfo, error) {
	if err := u.ask("stat", name); err != nil {
		return nil, err
	}
	return u.MapFS.Stat(name)
}

func (u *unreadable) ReadFile(name string) ([]byte, error) {
	if err := u.ask("read", name); err != nil {
		return nil, err
	}
	return u.MapFS.ReadFile(name)
}

func (u *unreadable) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := u.ask("readdir", name); err != nil {
		return nil, err
	}
	return u.MapFS.ReadDir(name)
}
