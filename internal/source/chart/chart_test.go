package chart_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source/chart"
	"github.com/flotilla-sh/flotilla/internal/source/chart/charttest"
	"github.com/flotilla-sh/flotilla/internal/source/git"
	"github.com/flotilla-sh/flotilla/internal/source/git/gittest"
)

func fetcher(t testing.TB, mirrors chart.Mirrors) *chart.Fetcher {
	t.Helper()
	clones, err := git.NewCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f, err := chart.New(chart.Options{Dir: t.TempDir(), Git: clones, Limits: chart.Limits{Size: 1 << 20, Files: 100}, Mirrors: mirrors})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func fetch(t testing.TB, f *chart.Fetcher, a chart.Access, w chart.Want, pin *chart.Pin) (*chart.Chart, error) {
	t.Helper()
	s := f.Open(a)
	defer s.Close()
	return s.Fetch(t.Context(), w, pin)
}

func pattern(t testing.TB, text string) chart.Access {
	t.Helper()
	p, err := chart.URLPattern(text)
	if err != nil {
		t.Fatal(err)
	}
	return chart.Access{URLs: p}
}

func names(c *chart.Chart) string {
	var all []string
	for _, f := range c.Files {
		all = append(all, f.Path)
	}
	return strings.Join(all, " ")
}

func TestVersions(t *testing.T) {
	repo := charttest.Serve(t)
	for _, v := range []string{"1.0.0", "1.2.0", "1.10.0", "2.0.0-rc.1", "0.9.0", "not-a-version"} {
		repo.Add("app", v)
	}
	repo.Add("apple", "7.0.0")
	f := fetcher(t, nil)
	for wanted, want := range map[string]string{
		"": "1.10.0", "*": "1.10.0", "^1.1": "1.10.0", "1.2": "1.2.0", "~1.2.0": "1.2.0", "1.0.0": "1.0.0", "v1.0.0": "1.0.0",
		">=2.0.0-0": "2.0.0-rc.1", "<1": "0.9.0", "not-a-version": "not-a-version",
	} {
		got, err := fetch(t, f, chart.Access{}, chart.Want{Repo: repo.URL, Chart: "app", Version: wanted}, nil)
		if err != nil {
			t.Errorf("%q: %v", wanted, err)
			continue
		}
		if got.Version != want || len(got.Digest) != 64 || names(got) != "Chart.yaml templates/cm.yaml values.yaml" {
			t.Errorf("%q: got %s %s %s, want %s", wanted, got.Version, got.Digest, names(got), want)
		}
	}
	for wanted, say := range map[string]string{"^3": "the newest there is 2.0.0-rc.1", "=>1<": "neither a version nor a constraint"} {
		_, err := fetch(t, f, chart.Access{}, chart.Want{Repo: repo.URL, Chart: "app", Version: wanted}, nil)
		if err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%q: %v, want %q", wanted, err, say)
		}
	}
	_, err := fetch(t, f, chart.Access{}, chart.Want{Repo: repo.URL, Chart: "appel"}, nil)
	if err == nil || !strings.Contains(err.Error(), `did you mean "app`) || fault.KindOf(err) != fault.Waiting {
		t.Errorf("got %v", err)
	}
}

func TestWhereChartsComeFrom(t *testing.T) {
	repo := charttest.Serve(t)
	repo.Add("app", "1.0.0")
	tree := charttest.Pack("tree-main", map[string]string{
		"README.md": "x", "charts/app/Chart.yaml": "name: app\nversion: 3.0.0\n", "charts/app/values.yaml": "", "charts/other/Chart.yaml": "name: other\n",
	})
	repo.Put("/tree.tar.gz", tree)
	repo.AddEntry("far", "1.0.0", repo.URL+"/app-1.0.0.tgz", charttest.Pack("app", charttest.Chart("app", "1.0.0")))
	served := gittest.Serve(t)
	r := gittest.NewRepo(t, served.Root, "charts.git")
	for name, text := range charttest.Chart("app", "4.0.0") {
		r.Write("charts/app/"+name, text)
	}
	commit := r.Push("README.md", "x")
	f := fetcher(t, nil)
	for name, tt := range map[string]struct {
		want    chart.Want
		version string
		digest  string
		files   int
	}{
		"repository":              {chart.Want{Repo: repo.URL + "/", Chart: "app"}, "1.0.0", "", 3},
		"absolute URL":            {chart.Want{Repo: repo.URL, Chart: "far"}, "1.0.0", "", 3},
		"archive":                 {chart.Want{Chart: repo.URL + "/app-1.0.0.tgz"}, "1.0.0", "", 3},
		"directory of an archive": {chart.Want{Chart: repo.URL + "/tree.tar.gz//charts/app"}, "3.0.0", "", 2},
		"with its top directory":  {chart.Want{Chart: repo.URL + "/tree.tar.gz//tree-main/charts/app"}, "3.0.0", "", 2},
		"git, default branch":     {chart.Want{Chart: "git::" + served.URL + "/charts.git//charts/app"}, "4.0.0", commit, 3},
		"git, branch":             {chart.Want{Chart: served.URL + "/charts.git//charts/app?ref=main"}, "4.0.0", commit, 3},
		"git, commit":             {chart.Want{Chart: served.URL + "/charts.git//charts/app?ref=" + commit}, "4.0.0", commit, 3},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := fetch(t, f, chart.Access{}, tt.want, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.Version != tt.version || len(got.Files) != tt.files || tt.digest != "" && got.Digest != tt.digest {
				t.Errorf("got %s %s %s", got.Version, got.Digest, names(got))
			}
		})
	}
	for name, tt := range map[string]struct {
		want chart.Want
		say  string
	}{
		"nothing there":      {chart.Want{Chart: repo.URL + "/none.tgz?token=hunter2"}, "nothing at " + repo.URL + "/none.tgz"},
		"no chart in it":     {chart.Want{Chart: repo.URL + "/tree.tar.gz"}, "no Chart.yaml"},
		"no chart in git":    {chart.Want{Chart: served.URL + "/charts.git"}, "no Chart.yaml"},
		"no branch":          {chart.Want{Chart: served.URL + "/charts.git//charts/app?ref=mian"}, `did you mean "main"`},
		"checksum":           {chart.Want{Chart: repo.URL + "/tree.tar.gz//charts/app?checksum=sha256:" + strings.Repeat("00", 32)}, "was changed on its way"},
		"no server":          {chart.Want{Chart: "http://127.0.0.1:1/app.tgz?token=hunter2"}, "cannot reach http://127.0.0.1:1/app.tgz: "},
		"not a chart at all": {chart.Want{Chart: repo.URL + "/index.yaml"}, "cannot be unpacked"},
		"a path":             {chart.Want{Chart: "./chart"}, "is a path"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fetch(t, f, chart.Access{}, tt.want, nil)
			if err == nil || !strings.Contains(err.Error(), tt.say) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want %q", err, tt.say)
			}
		})
	}
}

func TestCredentials(t *testing.T) {
	repo := charttest.ServeTLS(t)
	repo.Username, repo.Password = "me", "hunter2"
	repo.Add("app", "1.0.0")
	bearer := charttest.Serve(t)
	bearer.Token = "hunter2"
	bearer.Add("app", "1.0.0")
	login := func(urls string) chart.Access {
		a := pattern(t, urls)
		a.Username, a.Password, a.CACerts = "me", "hunter2", repo.CA()
		return a
	}
	f := fetcher(t, nil)
	for name, tt := range map[string]struct {
		access chart.Access
		want   chart.Want
		reason string
	}{
		"the whole URL":    {login("https://127.0.0.1:[0-9]+"), chart.Want{Repo: repo.URL, Chart: "app"}, ""},
		"an archive":       {login("https://127.0.0.1:[0-9]+/app.*"), chart.Want{Chart: repo.URL + "/app-1.0.0.tgz"}, ""},
		"part of the URL":  {login("https://127.0"), chart.Want{Repo: repo.URL, Chart: "app"}, chart.ReasonUnauthorized},
		"no expression":    {login(""), chart.Want{Repo: repo.URL, Chart: "app"}, chart.ReasonUnauthorized},
		"no authority":     {chart.Access{Username: "me"}, chart.Want{Repo: repo.URL, Chart: "app"}, chart.ReasonUntrusted},
		"insecure":         {chart.Access{Insecure: true}, chart.Want{Repo: repo.URL, Chart: "app"}, chart.ReasonUnauthorized},
		"bearer":           {chart.Access{Token: "hunter2", URLs: pattern(t, ".*").URLs}, chart.Want{Repo: bearer.URL, Chart: "app"}, ""},
		"bearer, no match": {chart.Access{Token: "hunter2"}, chart.Want{Repo: bearer.URL, Chart: "app"}, chart.ReasonUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fetch(t, f, tt.access, tt.want, nil)
			if fault.ReasonOf(err, "") != tt.reason {
				t.Errorf("got %v, want %q", err, tt.reason)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v shows a secret", err)
			}
		})
	}
	_, err := chart.URLPattern("([")
	if fault.KindOf(err) != fault.Stalled {
		t.Errorf("got %v", err)
	}
}

// TestCredentialsStayHome lets a repository send those who ask elsewhere.
func TestCredentialsStayHome(t *testing.T) {
	thief := charttest.Serve(t)
	archive := charttest.Pack("app", charttest.Chart("app", "1.0.0"))
	thief.Put("/stolen.tgz", archive)
	home := charttest.Serve(t)
	home.Username, home.Password = "me", "hunter2"
	home.AddEntry("redirected", "1.0.0", "redirected.tgz", archive)
	home.Redirect("/redirected.tgz", thief.URL+"/stolen.tgz")
	home.AddEntry("elsewhere", "1.0.0", thief.URL+"/stolen.tgz", archive)
	a := pattern(t, ".*")
	a.Username, a.Password = "me", "hunter2"
	for _, name := range []string{"redirected", "elsewhere"} {
		if _, err := fetch(t, fetcher(t, nil), a, chart.Want{Repo: home.URL, Chart: name}, nil); err != nil && fault.ReasonOf(err, "") != chart.ReasonUnauthorized {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(thief.Asked()) != 2 {
		t.Errorf("the other host was asked %d times", len(thief.Asked()))
	}
	for _, r := range thief.Asked() {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" {
			t.Errorf("%s got the credential", r.URL)
		}
	}
	secure := charttest.ServeTLS(t)
	secure.Redirect("/app.tgz", thief.URL+"/stolen.tgz")
	_, err := fetch(t, fetcher(t, nil), chart.Access{CACerts: secure.CA()}, chart.Want{Chart: secure.URL + "/app.tgz"}, nil)
	if err == nil || !strings.Contains(err.Error(), "without TLS") {
		t.Errorf("got %v, want that TLS is not left", err)
	}
}

func TestPinsAndTheDisk(t *testing.T) {
	repo := charttest.Serve(t)
	repo.Username, repo.Password = "me", "hunter2"
	repo.Add("app", "1.0.0")
	a := pattern(t, ".*")
	a.Username, a.Password = "me", "hunter2"
	f := fetcher(t, nil)
	want := chart.Want{Repo: repo.URL, Chart: "app", Version: "1.x"}
	first, err := fetch(t, f, a, want, nil)
	if err != nil {
		t.Fatal(err)
	}
	pin := &chart.Pin{Version: first.Version, Digest: first.Digest}
	repo.Add("app", "1.1.0")
	repo.SetDown(true)
	asked := len(repo.Asked())
	again, err := fetch(t, f, a, want, pin)
	if err != nil || again.Digest != first.Digest || len(again.Files) != len(first.Files) || len(repo.Asked()) != asked {
		t.Errorf("the pin is not taken from the disk: %v, %d requests", err, len(repo.Asked())-asked)
	}
	// Another credential does not find what this one opened.
	for _, other := range []chart.Access{{}, {Username: "me", Password: "guess", URLs: a.URLs}} {
		if _, err := fetch(t, f, other, want, pin); err == nil {
			t.Error("a pin opened what its credential does not")
		}
	}
	repo.SetDown(false)
	if got, err := fetch(t, fetcher(t, nil), a, want, pin); err != nil || got.Version != "1.0.0" {
		t.Errorf("without the disk the pin is %v, %v", got, err)
	}
	if got, err := fetch(t, f, a, want, nil); err != nil || got.Version != "1.1.0" {
		t.Errorf("without a pin it is %v, %v", got, err)
	}
	pin.Digest = strings.Repeat("00", 32)
	if _, err := fetch(t, f, a, want, pin); fault.ReasonOf(err, "") != chart.ReasonChanged {
		t.Errorf("got %v, want that the chart was changed", err)
	}
}

func TestMirrors(t *testing.T) {
	mirror := charttest.Serve(t)
	mirror.Username, mirror.Password = "me", "hunter2"
	mirror.Add("app", "1.0.0")
	mirror.AddEntry("absolute", "1.0.0", "https://charts.example/stable/app-1.0.0.tgz", mirror.Add("app", "1.0.0"))
	mirrors, err := chart.ParseMirrors([]string{"https://charts.example/stable=" + mirror.URL, "https://charts.example=http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ urls, chart, reason string }{
		"mirrored":                          {mirror.URL, "app", ""},
		"URLs in the index":                 {mirror.URL, "absolute", ""},
		"credentials are for the upstream":  {"https://charts.example/.*", "app", chart.ReasonUnauthorized},
		"the mirror is asked, no one else ": {"", "app", chart.ReasonUnauthorized},
	} {
		a := pattern(t, tt.urls)
		a.Username, a.Password = "me", "hunter2"
		_, err := fetch(t, fetcher(t, mirrors), a, chart.Want{Repo: "https://charts.example/stable", Chart: tt.chart}, nil)
		if fault.ReasonOf(err, "") != tt.reason {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := mirrors.Of("https://charts.example/stables/app"); got != "http://127.0.0.1:1/stables/app" {
		t.Errorf("got %s", got)
	}
	for _, bad := range []string{"x", "https://a=b", "oci://a=https://b"} {
		if _, err := chart.ParseMirrors([]string{bad}); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

func TestFailingServers(t *testing.T) {
	repo := charttest.Serve(t)
	repo.SetDown(true)
	_, err := fetch(t, fetcher(t, nil), chart.Access{}, chart.Want{Repo: repo.URL, Chart: "app"}, nil)
	if fault.KindOf(err) != fault.Transient || !strings.Contains(err.Error(), "503") {
		t.Errorf("got %v", err)
	}
	silent := httptest.NewServer(nil)
	silent.Close()
	if _, err := fetch(t, fetcher(t, nil), chart.Access{}, chart.Want{Repo: silent.URL, Chart: "app"}, nil); fault.KindOf(err) != fault.Transient {
		t.Errorf("got %v", err)
	}
}

func TestLeavesNothingBehind(t *testing.T) {
	repo := charttest.Serve(t)
	repo.Add("app", "1.0.0")
	dir := t.TempDir()
	f, err := chart.New(chart.Options{Dir: dir, Limits: chart.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"app", "none"} {
		_, _ = fetch(t, f, chart.Access{}, chart.Want{Repo: repo.URL, Chart: name}, nil)
	}
	_, _ = fetch(t, f, chart.Access{}, chart.Want{Chart: repo.URL + "/index.yaml"}, nil)
	if left, _ := filepath.Glob(filepath.Join(dir, "part-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 1 {
		t.Errorf("%d accesses, want one", len(entries))
	}
}
