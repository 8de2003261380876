package access_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/source/chart"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func opaque(name string, data map[string]string) *corev1.Secret {
	s := secret(name, data)
	s.Type = corev1.SecretTypeOpaque
	return s
}

func TestChartsOfAGitRepo(t *testing.T) {
	objects := []client.Object{
		opaque("one", map[string]string{"username": "one", "password": "p"}),
		opaque("paths", map[string]string{chart.KeyPaths: "apps/web: {username: web}\n"}),
		opaque("bad", map[string]string{"basicHTTP": "hunter2"}),
	}
	for name, tt := range map[string]struct {
		spec fleet.GitRepoSpec
		user string
		say  string
	}{
		"none":            {fleet.GitRepoSpec{}, "", ""},
		"one for all":     {fleet.GitRepoSpec{HelmSecretName: "one"}, "one", ""},
		"by path":         {fleet.GitRepoSpec{HelmSecretName: "one", HelmSecretNameForPaths: "paths"}, "web", ""},
		"not there":       {fleet.GitRepoSpec{HelmSecretName: "none"}, "", "spec.helmSecretName: there is no secret none"},
		"no paths in it":  {fleet.GitRepoSpec{HelmSecretNameForPaths: "one"}, "", "secrets-path.yaml"},
		"not as it is to": {fleet.GitRepoSpec{HelmSecretName: "bad"}, "", "write true or false"},
		"no expression":   {fleet.GitRepoSpec{HelmRepoURLRegex: "(["}, "", "spec.helmRepoURLRegex"},
	} {
		t.Run(name, func(t *testing.T) {
			repo := repoOf("")
			repo.Spec = tt.spec
			repo.Spec.CABundle, repo.Spec.InsecureSkipTLSverify = []byte("ca"), true
			reach, err := reader(objects...).Charts(t.Context(), repo)
			if tt.say != "" {
				if fault.KindOf(err) == fault.Transient || err == nil || !strings.Contains(err.Error(), tt.say) {
					t.Errorf("got %v, want %q", err, tt.say)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			a := reach("apps/web")
			if a.Username != tt.user || string(a.CACerts) != "ca" || !a.Insecure || a.URLs != nil {
				t.Errorf("got %+v", a)
			}
			if other := reach("apps/db").Username; name == "by path" && other != "" {
				t.Errorf("another directory gets the credentials of %s", other)
			}
		})
	}
}

func TestChartsOfAHelmOp(t *testing.T) {
	op := &fleet.HelmOp{}
	op.Namespace, op.Spec.HelmSecretName = "space", "one"
	op.Spec.Helm = &fleet.HelmOptions{Repo: "https://charts.example/stable", Chart: "app"}
	a, err := reader(opaque("one", map[string]string{"username": "one"})).HelmOpCharts(t.Context(), op)
	if err != nil || a.Username != "one" {
		t.Fatalf("got %+v, %v", a, err)
	}
	for url, want := range map[string]bool{
		"https://charts.example/stable": true, "https://charts.example/other": true, "https://charts.example": true,
		"http://charts.example/stable": false, "https://charts.example.org/stable": false, "https://evil.example/https://charts.example/": false,
	} {
		if got := a.URLs.MatchString(url); got != want {
			t.Errorf("%s: %v, want %v", url, got, want)
		}
	}
}

func TestMirrorOfAGitRepo(t *testing.T) {
	r := reader()
	r.Mirrors = chart.Mirrors{"https://git.example": "https://mirror.internal/git"}
	repo := repoOf("")
	repo.Spec.Repo = "https://git.example/apps.git"
	remote, err := r.Remote(t.Context(), repo)
	if err != nil || remote.URL != "https://mirror.internal/git/apps.git" {
		t.Errorf("got %s, %v", remote.URL, err)
	}
}
