package charts_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/flotilla-sh/flotilla/internal/bundle"
	"github.com/flotilla-sh/flotilla/internal/charts"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/render"
	"github.com/flotilla-sh/flotilla/internal/source"
	"github.com/flotilla-sh/flotilla/internal/source/chart"
	"github.com/flotilla-sh/flotilla/internal/source/chart/charttest"
	"github.com/flotilla-sh/flotilla/internal/source/git"
	"github.com/flotilla-sh/flotilla/internal/source/git/gittest"
	"github.com/flotilla-sh/flotilla/internal/target"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// world is a chart repository, a Git server and a disk.
type world struct {
	*testing.T
	repo    *charttest.Server
	fetcher *chart.Fetcher
	access  chart.Access
	limits  chart.Limits
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, repo: charttest.Serve(t), limits: chart.Limits{Size: 1 << 20, Files: 200}}
	w.freshDisk()
	return w
}

func (w *world) freshDisk() {
	w.Helper()
	clones, err := git.NewCache(w.TempDir())
	if err != nil {
		w.Fatal(err)
	}
	if w.fetcher, err = chart.New(chart.Options{Dir: w.TempDir(), Git: clones, Limits: w.limits}); err != nil {
		w.Fatal(err)
	}
}

// draft scans files, with the URL of the repository for REPO.
func (w *world) draft(files map[string]string) (bundle.Draft, source.Tree) {
	w.Helper()
	tree := fstest.MapFS{}
	for name, text := range files {
		tree[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(text, "REPO", w.repo.URL))}
	}
	at := source.Tree{Commit: "c", FS: tree}
	drafts, err := bundle.Scan(at, bundle.Input{RepoName: "r", Paths: []string{"app"}})
	if err != nil || len(drafts) != 1 || drafts[0].Err != nil {
		w.Fatalf("%d drafts, %v", len(drafts), err)
	}
	return drafts[0], at
}

func (w *world) fill(in charts.Input, files map[string]string) (bundle.Draft, error) {
	w.Helper()
	d, tree := w.draft(files)
	in.Draft, in.Tree, in.Access = &d, tree.FS, w.access
	p := charts.NewPacker(w.fetcher)
	defer p.Close()
	return d, p.Fill(w.Context(), in)
}

// mustFill fills a draft and renders it for a cluster.
func (w *world) mustFill(in charts.Input, files map[string]string) bundle.Draft {
	w.Helper()
	d, err := w.fill(in, files)
	if err != nil {
		w.Fatal(err)
	}
	return d
}

func (w *world) render(d *bundle.Draft, over *fleet.BundleDeploymentOptions) (string, error) {
	w.Helper()
	options := d.Spec.BundleDeploymentOptions
	if over != nil {
		options = target.Merge(options, *over)
	}
	result, err := render.New().Render(w.Context(), render.Request{Files: d.Files, Bundle: "b", Options: options, Capabilities: render.Capabilities{KubeVersion: "v1.36.3"}})
	if err != nil {
		return "", err
	}
	var out []string
	for _, o := range result.Objects {
		out = append(out, string(o.JSON))
	}
	return strings.Join(out, "\n"), nil
}

func pins(d *bundle.Draft) string {
	var all []string
	for _, c := range d.Spec.Charts {
		all = append(all, strings.TrimSuffix(fmt.Sprintf("%s %s", c.Chart, c.Version), " "))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func TestChartsOfEachTarget(t *testing.T) {
	w := newWorld(t)
	for _, v := range []string{"1.0.0", "1.1.0", "2.0.0"} {
		w.repo.Add("app", v)
	}
	w.repo.Add("other", "5.0.0")
	base := "helm: {repo: REPO, chart: app, version: ^1}\n"
	for name, tt := range map[string]struct{ config, want string }{
		"one":                   {base, "app 1.1.0"},
		"another version":       {base + "targetCustomizations:\n- {name: a, clusterSelector: {}, helm: {version: 2.0.0}}\n", "app 1.1.0, app 2.0.0"},
		"another chart":         {base + "targetCustomizations:\n- {name: a, clusterSelector: {}, helm: {chart: other, version: '*'}}\n", "app 1.1.0, other 5.0.0"},
		"values alone":          {base + "targetCustomizations:\n- {name: a, clusterSelector: {}, helm: {values: {a: b}}}\n", "app 1.1.0"},
		"not deployed":          {base + "targetCustomizations:\n- {name: a, clusterSelector: {}, doNotDeploy: true, helm: {version: 9.0.0}}\n", "app 1.1.0"},
		"chart in each target":  {"helm: {repo: REPO}\ntargetCustomizations:\n- {name: a, clusterSelector: {}, helm: {chart: other}}\n", "other 5.0.0"},
		"all that match":        {base + "targetCustomizationMode: AllMatches\ntargetCustomizations:\n- {name: a, clusterSelector: {}, helm: {chart: other}}\n- {name: b, clusterSelector: {}, helm: {version: '>=1'}}\n", "app 1.1.0, app 2.0.0, other 5.0.0, other 5.0.0"},
		"all that match, fails": {base + "targetCustomizationMode: AllMatches\ntargetCustomizations:\n- {name: a, clusterSelector: {}, helm: {chart: none}}\n", `has no chart "none"`},
	} {
		t.Run(name, func(t *testing.T) {
			d, tree := w.draft(map[string]string{"app/fleet.yaml": tt.config})
			if !charts.Needed(&d) {
				t.Error("it needs no chart")
			}
			p := charts.NewPacker(w.fetcher)
			defer p.Close()
			if strings.HasSuffix(name, "fails") {
				d.Spec.Targets[0].Helm.Version = "^1"
			}
			err := p.Fill(t.Context(), charts.Input{Draft: &d, Tree: tree.FS})
			switch {
			case name == "all that match":
				// The other chart has no version that fits ^1.
				if fault.ReasonOf(err, "") != chart.ReasonNotFound {
					t.Errorf("got %v", err)
				}
			case strings.HasSuffix(name, "fails"):
				if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "app/fleet.yaml: ") {
					t.Errorf("got %v", err)
				}
			case err != nil || pins(&d) != tt.want:
				t.Errorf("got %s, %v; want %s", pins(&d), err, tt.want)
			}
			if err != nil {
				return
			}
			for _, over := range append([]fleet.BundleTarget{{}}, d.Spec.Targets...) {
				if name == "chart in each target" && over.Helm == nil || over.DoNotDeploy {
					continue
				}
				if _, err := w.render(&d, &over.BundleDeploymentOptions); err != nil {
					t.Errorf("with target %q: %v", over.Name, err)
				}
			}
		})
	}
}

func TestRendersTheSameWithoutNetwork(t *testing.T) {
	w := newWorld(t)
	w.repo.Add("app", "1.0.0")
	files := map[string]string{"app/fleet.yaml": "helm: {repo: REPO, chart: app, version: ^1, values: {colour: red}}\n"}
	first := w.mustFill(charts.Input{}, files)
	text, err := w.render(&first, nil)
	if err != nil || !strings.Contains(text, `"version":"1.0.0"`) || !strings.Contains(text, "red") {
		t.Fatalf("got %s, %v", text, err)
	}
	w.repo.Add("app", "1.1.0")
	have := charts.Input{Have: first.Spec.Charts, Stored: func(context.Context) ([]source.File, error) { return first.Files, nil }}
	same := func(what string, in charts.Input) {
		t.Helper()
		if again := w.mustFill(in, files); again.SourceDigest != first.SourceDigest || pins(&again) != "app 1.0.0" {
			t.Errorf("%s: got %s", what, pins(&again))
		}
	}
	same("kept on the disk", charts.Input{Have: have.Have})
	w.freshDisk()
	same("from the server, pinned", charts.Input{Have: have.Have})
	w.freshDisk()
	w.repo.SetDown(true)
	same("from the bundle", have)
	if _, err := w.fill(charts.Input{Have: have.Have}, files); err == nil {
		t.Error("it came from nowhere")
	}
	w.repo.SetDown(false)
	have.Refresh = charts.Newer
	if newer := w.mustFill(have, files); pins(&newer) != "app 1.1.0" {
		t.Errorf("looked for newer: got %s", pins(&newer))
	}
	exact := map[string]string{"app/fleet.yaml": "helm: {repo: REPO, chart: app, version: 1.0.0}\n"}
	pinned := w.mustFill(charts.Input{}, exact)
	asked := len(w.repo.Asked())
	w.mustFill(charts.Input{Have: pinned.Spec.Charts, Refresh: charts.Newer}, exact)
	if n := len(w.repo.Asked()) - asked; n != 0 {
		t.Errorf("an exact version is looked for again, with %d requests", n)
	}
	w.mustFill(charts.Input{Have: pinned.Spec.Charts, Refresh: charts.All}, exact)
	if len(w.repo.Asked()) == asked {
		t.Error("all charts are looked for, and this one is not")
	}
	w.freshDisk()
	none := w.access
	for _, keys := range []chart.Access{{Keyring: []byte("no key at all")}, {CosignKeys: []byte("no key at all")}} {
		w.access = none
		w.access.Keyring, w.access.CosignKeys = keys.Keyring, keys.CosignKeys
		if _, err := w.fill(charts.Input{Have: pinned.Spec.Charts, Stored: have.Stored}, exact); fault.ReasonOf(err, "") == "" {
			t.Errorf("got %v: what the bundle has was not verified", err)
		}
	}
}

const umbrella = "apiVersion: v2\nname: umbrella\nversion: 0.1.0\ndependencies:\n"

func TestDependencies(t *testing.T) {
	w := newWorld(t)
	for _, v := range []string{"1.0.0", "1.1.0"} {
		w.repo.Add("sub", v)
	}
	served := gittest.Serve(t)
	r := gittest.NewRepo(t, served.Root, "charts.git")
	for name, text := range charttest.Chart("fromgit", "1.0.0", "Chart.yaml", "dependencies:\n- {name: common, version: 1.x, repository: 'file://../common'}\n") {
		r.Write("fromgit/"+name, text)
	}
	for name, text := range charttest.Chart("common", "1.0.0") {
		r.Write("common/"+name, text)
	}
	r.Push("README.md", "x")
	lock := "dependencies:\n- {name: sub, repository: REPO/, version: 1.0.0}\n"
	dep := umbrella + "- {name: sub, version: ^1, repository: REPO}\n"
	for name, tt := range map[string]struct {
		files   map[string]string
		pins    string
		objects []string
		warning string
	}{
		"constraint":                      {map[string]string{"app/Chart.yaml": dep}, "sub 1.1.0", []string{`"version":"1.1.0"`}, ""},
		"locked":                          {map[string]string{"app/Chart.yaml": dep, "app/Chart.lock": lock}, "sub 1.0.0", []string{`"version":"1.0.0"`}, ""},
		"a name, and its URL in the lock": {map[string]string{"app/Chart.yaml": umbrella + "- {name: sub, version: ^1, repository: '@stable'}\n", "app/Chart.lock": lock}, "sub 1.0.0", nil, ""},
		"lock out of date":                {map[string]string{"app/Chart.yaml": umbrella + "- {name: sub, version: ~1.1, repository: REPO}\n", "app/Chart.lock": lock}, "sub 1.1.0", nil, "does not fit"},
		"first version": {map[string]string{
			"app/Chart.yaml": "apiVersion: v1\nname: old\nversion: 0.1.0\n", "app/requirements.yaml": "dependencies:\n- {name: sub, version: ^1, repository: REPO}\n", "app/requirements.lock": lock,
		}, "sub 1.0.0", []string{`"version":"1.0.0"`}, ""},
		"in a directory":    {map[string]string{"app/fleet.yaml": "helm: {chart: charts/mine}\n", "app/charts/mine/Chart.yaml": dep}, "sub 1.1.0", []string{`"version":"1.1.0"`}, ""},
		"vendored":          {map[string]string{"app/Chart.yaml": dep, "app/charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.5\n"}, "", nil, ""},
		"vendored, packed":  {map[string]string{"app/Chart.yaml": dep, "app/charts/sub-1.0.0.tgz": string(charttest.Pack("sub", charttest.Chart("sub", "1.0.0")))}, "", []string{`"version":"1.0.0"`}, ""},
		"switched off":      {map[string]string{"app/Chart.yaml": dep, "app/fleet.yaml": "helm: {disableDependencyUpdate: true}\n"}, "", nil, ""},
		"of the repository": {map[string]string{"app/Chart.yaml": umbrella + "- {name: lib, version: 1.x, repository: 'file://../lib'}\n", "lib/Chart.yaml": "apiVersion: v2\nname: lib\nversion: 1.2.0\ndependencies:\n- {name: deep, version: 1.x, repository: 'file://deep'}\n", "lib/deep/Chart.yaml": "apiVersion: v2\nname: deep\nversion: 1.0.0\n", "lib/templates/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lib}\n"}, "", []string{`"name":"lib"`}, ""},
		"in Git":            {map[string]string{"app/fleet.yaml": "helm: {chart: 'git::" + served.URL + "/charts.git//fromgit'}\n"}, "git::" + served.URL + "/charts.git//fromgit 1.0.0", []string{`"name":"common"`, `"name":"fromgit"`}, ""},
		"under two names": {map[string]string{"app/Chart.yaml": umbrella + "- {name: sub, alias: one, version: 1.0.0, repository: REPO}\n- {name: sub, alias: two, version: 1.1.0, repository: REPO}\n"},
			"sub 1.0.0, sub 1.1.0", []string{`"version":"1.0.0"`, `"version":"1.1.0"`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := w.mustFill(charts.Input{}, tt.files)
			if pins(&d) != tt.pins {
				t.Errorf("got %q, want %q", pins(&d), tt.pins)
			}
			if warned := strings.Trim(fmt.Sprint(d.Warnings), "[]"); (warned != "") != (tt.warning != "") || !strings.Contains(warned, tt.warning) {
				t.Errorf("warnings: %s", warned)
			}
			if tt.objects == nil {
				return
			}
			text, err := w.render(&d, nil)
			for _, part := range tt.objects {
				if err != nil || !strings.Contains(text, part) {
					t.Errorf("%v, no %s in %s", err, part, text)
				}
			}
		})
	}
	for name, tt := range map[string]struct {
		repository, say string
	}{
		"a name":         {"'@stable'", "app/Chart.yaml:5: dependency sub: its repository is \"@stable\", a name on somebody's computer: write the URL, or commit the Chart.lock"},
		"an alias":       {"alias:stable", "write the URL"},
		"a path":         {"file:///home/me/chart", "a path relative to the chart"},
		"leads out":      {"file://../../../x", "leads out of the repository"},
		"not there":      {"file://../none", "there is no directory none"},
		"no such chart":  {"REPO/none", "nothing at"},
		"unknown scheme": {"s3://x/y", "use https or oci"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.fill(charts.Input{}, map[string]string{"app/Chart.yaml": umbrella + "- {name: sub, version: ^1, repository: " + tt.repository + "}\n"})
			if err == nil || !strings.Contains(err.Error(), tt.say) || !strings.Contains(err.Error(), "dependency sub") {
				t.Errorf("got %v, want %q", err, tt.say)
			}
		})
	}
}

func TestAllChartsTogetherAreBounded(t *testing.T) {
	w := newWorld(t)
	big := strings.Repeat("x", 400<<10)
	var deps strings.Builder
	for i := range 3 {
		w.repo.Add(fmt.Sprintf("big%d", i), "1.0.0", "data", big)
		fmt.Fprintf(&deps, "- {name: big%d, version: 1.0.0, repository: REPO}\n", i)
	}
	_, err := w.fill(charts.Input{}, map[string]string{"app/Chart.yaml": umbrella + deps.String()})
	if fault.ReasonOf(err, "") != chart.ReasonTooLarge || fault.KindOf(err) != fault.Stalled {
		t.Errorf("got %v", err)
	}
	if d, _ := w.draft(map[string]string{"app/a.yaml": "kind: ConfigMap\n"}); charts.Needed(&d) {
		t.Error("plain YAML needs no chart")
	}
}
