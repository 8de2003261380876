package hubtest_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// A commit that nobody known has signed is refused by name, and what was there
// before stays until the commit is accepted.
func TestUnsignedCommitIsRefused(t *testing.T) {
	w := newWhole(t)
	push, url := w.serveGit()
	commit := func(value string) string {
		return push("app", map[string]string{"a.yaml": configMap(value)[0].Content})
	}
	first := commit("one")
	w.create(&corev1.Secret{ObjectMeta: w.meta("signers"), StringData: map[string]string{
		"jane": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl",
	}})
	repo := &fleet.GitRepo{ObjectMeta: w.meta("app"), Spec: fleet.GitRepoSpec{Repo: url + "/app.git", Branch: "main"}}
	w.create(repo)
	w.start()
	b := &fleet.Bundle{ObjectMeta: w.meta("app")}
	w.eventually("the first commit", func() bool { return w.exists(repo) && repo.Status.Commit == first && w.exists(b) })
	source := b.Spec.ContentsID

	second := commit("two")
	change := func(verify *fleet.CommitVerification) {
		w.eventually("change the GitRepo", func() bool {
			w.exists(repo)
			repo.Spec.Verify = verify
			repo.Spec.ForceSyncGeneration++
			return w.client.Update(w.ctx, repo) == nil
		})
	}
	change(&fleet.CommitVerification{SecretName: "signers"})
	refusedAs := func(part string) bool {
		w.exists(repo)
		c := fleet.FindCondition(repo.Status.Conditions, fleet.ConditionStalled)
		return c != nil && c.Status == "True" && c.Reason == "CommitUnverified" && strings.Contains(c.Message, part)
	}
	w.eventually("refuse the second commit", func() bool { return refusedAs("commit "+second) && refusedAs("not signed") })
	if w.exists(b); repo.Status.Commit != first || b.Spec.ContentsID != source {
		t.Errorf("the commit is %s, want %s, and its bundle as it was", repo.Status.Commit, first)
	}
	change(nil)
	w.eventually("the second commit", func() bool { return w.exists(repo) && repo.Status.Commit == second })
}
