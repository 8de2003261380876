package chartref_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-sh/flotilla/internal/source/chartref"
)

var (
	sum    = strings.Repeat("0a", 32)
	sample = []struct {
		name, repo, chart, version string
		want                       chartref.Ref
	}{
		{"nothing", "", "", "", chartref.Ref{}},
		{"a directory", "", "./charts/app", "", chartref.Ref{URL: "./charts/app"}},
		{"an archive in the bundle", "", "app-1.0.0.tgz", "", chartref.Ref{URL: "app-1.0.0.tgz"}},
		{"a directory like a host", "", "github.com", "", chartref.Ref{URL: "github.com"}},
		{"repository", "https://charts.example/stable/", "app", "^1", chartref.Ref{Kind: chartref.Repository, URL: "https://charts.example/stable/", Chart: "app", Version: "^1"}},
		{"oci", "", "oci://r.example:5000/charts/app", "1.x", chartref.Ref{Kind: chartref.OCI, URL: "oci://r.example:5000/charts/app", Version: "1.x"}},
		{"oci with a tag", "", "oci://r.example/charts/app:1.2.3", "", chartref.Ref{Kind: chartref.OCI, URL: "oci://r.example/charts/app", Version: "1.2.3"}},
		{"oci with a digest", "", "oci://r.example/app@sha256:" + sum, "", chartref.Ref{Kind: chartref.OCI, URL: "oci://r.example/app", Digest: "sha256:" + sum}},
		{"oci in repo", "oci://r.example/charts/app", "", "1.2.3", chartref.Ref{Kind: chartref.OCI, URL: "oci://r.example/charts/app", Version: "1.2.3"}},
		{"oci in repo with the name", "oci://r.example/charts/", "app", "", chartref.Ref{Kind: chartref.OCI, URL: "oci://r.example/charts/app"}},
		{"oci in repo with the name twice", "oci://r.example/charts/app", "app", "", chartref.Ref{Kind: chartref.OCI, URL: "oci://r.example/charts/app"}},
		{"archive", "", "https://host.example/app-1.tgz", "", chartref.Ref{Kind: chartref.Archive, URL: "https://host.example/app-1.tgz"}},
		{"directory of an archive", "", "https://host.example/a.tar.gz//charts/app?b=2&checksum=sha256:" + sum + "&a=1", "",
			chartref.Ref{Kind: chartref.Archive, URL: "https://host.example/a.tar.gz?b=2&a=1", Path: "charts/app", Checksum: sum}},
		{"git", "", "git::https://git.example/a/b//charts/app?ref=v1", "", chartref.Ref{Kind: chartref.Git, URL: "https://git.example/a/b", Path: "charts/app", Revision: "v1"}},
		{"git over ssh", "", "git::ssh://git@git.example:2222/a/b.git?ref=main", "", chartref.Ref{Kind: chartref.Git, URL: "ssh://git@git.example:2222/a/b.git", Revision: "main"}},
		{"scp", "", "git@git.example:a/b//app", "", chartref.Ref{Kind: chartref.Git, URL: "git@git.example:a/b", Path: "app"}},
		{"git by its name", "", "https://git.example/a/b.git//app", "", chartref.Ref{Kind: chartref.Git, URL: "https://git.example/a/b.git", Path: "app"}},
		{"shorthand", "", "github.com/a/b//charts/app?ref=v2", "", chartref.Ref{Kind: chartref.Git, URL: "https://github.com/a/b.git", Path: "charts/app", Revision: "v2"}},
		{"shorthand without a directory", "", "github.com/a/b?ref=v2", "", chartref.Ref{Kind: chartref.Git, URL: "https://github.com/a/b.git", Revision: "v2"}},
	}
)

func TestParse(t *testing.T) {
	for _, tt := range sample {
		t.Run(tt.name, func(t *testing.T) {
			got, err := chartref.Parse(tt.repo, tt.chart, tt.version)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if remote := chartref.IsRemote(tt.repo, tt.chart); remote != (got.Kind != chartref.Local) {
				t.Errorf("IsRemote is %v", remote)
			}
		})
	}
}

func TestParseComplains(t *testing.T) {
	for name, tt := range map[string]struct{ repo, chart, version, want string }{
		"no chart":           {"https://charts.example", "", "", "name a chart"},
		"two URLs":           {"https://charts.example", "https://charts.example/app.tgz", "", "helm.repo is set as well"},
		"a repo on the disk": {"file:///etc", "app", "", "without a host"},
		"a file":             {"", "file:///etc/passwd", "", `scheme "file"`},
		"s3":                 {"", "s3::https://s3.example/x.tgz", "", "s3::, which is not built"},
		"a login":            {"https://me:hunter2@charts.example", "app", "", "helmSecretName"},
		"a login in git":     {"", "git::ssh://git:hunter2@git.example/a", "", "helmSecretName"},
		"a key":              {"", "git::ssh://git@git.example/a?sshkey=aHVudGVyMg", "", "ssh-privatekey"},
		"leads out":          {"", "git::https://git.example/a//../b", "", "leads out"},
		"two versions":       {"", "oci://r.example/app:1.0.0", "2.0.0", "leave one of them out"},
		"a digest":           {"", "oci://r.example/app@sha256:x", "", "64 hex"},
		"a checksum":         {"", "https://host.example/a.tgz?checksum=md5:abc", "", "?checksum="},
		"no host":            {"", "oci:///app", "", "without a host"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := chartref.Parse(tt.repo, tt.chart, tt.version)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q in it", err, tt.want)
			}
			if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "aHVudGVyMg") {
				t.Errorf("%v shows a secret", err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range sample {
		f.Add(s.repo, s.chart, s.version)
	}
	f.Add("https://u:p@h", "a", "")
	f.Add("", "git::https://u:p@h/x//..//y?ref=%zz", "")
	f.Fuzz(func(t *testing.T, repo, chart, version string) {
		ref, err := chartref.Parse(repo, chart, version)
		if err != nil {
			return
		}
		if ref.Kind != chartref.Local && ref.URL == "" {
			t.Errorf("%q %q %q: no URL", repo, chart, version)
		}
		for part := range strings.SplitSeq(ref.Path, "/") {
			if part == ".." {
				t.Errorf("the path %q leads out", ref.Path)
			}
		}
		_ = ref.String()
	})
}
