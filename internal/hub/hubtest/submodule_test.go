package hubtest_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/source/git/gittest"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// TestSubmoduleOfAGitRepo deploys what is in a submodule, and goes on with what
// was there when one cannot be fetched that a path needs.
func TestSubmoduleOfAGitRepo(t *testing.T) {
	w := newWhole(t)
	served := &gittest.Server{Root: w.TempDir()}
	served.Server = httptest.NewServer(served)
	w.Cleanup(served.Close)
	repo, lib := gittest.NewRepo(t, served.Root, "repo.git"), gittest.NewRepo(t, served.Root, "lib.git")
	configMap := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME, namespace: default}\n"
	commit := lib.Push("cm.yaml", strings.ReplaceAll(configMap, "NAME", "lib"))
	hold := func(at, url string) {
		repo.Git("config", "--file", ".gitmodules", "submodule."+at+".path", at)
		repo.Git("config", "--file", ".gitmodules", "submodule."+at+".url", url)
		repo.Git("update-index", "--add", "--cacheinfo", "160000,"+commit+","+at)
		repo.Git("add", ".gitmodules")
		repo.Git("commit", "--quiet", "--message", "hold "+at)
		repo.Git("push", "--quiet", "origin", "HEAD")
	}
	repo.Push("app/cm.yaml", strings.ReplaceAll(configMap, "NAME", "app"))
	hold("lib", "../lib.git")
	hold("broken", "../broken.git")
	w.start()
	w.create(&fleet.GitRepo{ObjectMeta: w.meta("repo"), Spec: fleet.GitRepoSpec{
		Repo: served.URL + "/repo.git", Branch: "main", Paths: []string{"app", "lib"},
		PollingInterval: &metav1.Duration{Duration: time.Hour},
	}})
	got := &fleet.GitRepo{ObjectMeta: w.meta("repo")}
	stalled := func() string {
		if c := fleet.FindCondition(got.Status.Conditions, fleet.ConditionStalled); w.exists(got) && c != nil && c.Status == metav1.ConditionTrue {
			return c.Message
		}
		return ""
	}
	w.eventually("deploy the submodule", func() bool { return w.exists(&fleet.Bundle{ObjectMeta: w.meta("repo-lib")}) })
	w.eventually("have no complaint", func() bool { return w.exists(got) && got.Status.Commit != "" && stalled() == "" })
	base := got.DeepCopy()
	got.Spec.Paths = append(got.Spec.Paths, "broken")
	w.must(w.client.Patch(w.ctx, got, client.MergeFrom(base)))
	w.eventually("tell of the broken one", func() bool {
		return strings.Contains(stalled(), `.gitmodules:4: submodule "broken": there is no repository at `)
	})
	for _, name := range []string{"repo-app", "repo-lib"} {
		if !w.exists(&fleet.Bundle{ObjectMeta: w.meta(name)}) {
			t.Errorf("bundle %s is gone", name)
		}
	}
}
