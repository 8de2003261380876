package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

const (
	// registration is the namespace of the lab's clusters and GitRepos.
	registration = "fleet-default"
	// patience is how long a condition may take to come true.
	patience = 2 * time.Minute
)

// eventually polls until check succeeds.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	var err error
	for time.Now().Before(deadline) {
		if err = check(); err == nil {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%s: %v", what, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Fatalf("%s: not within %v: %v", what, patience, err)
}

// repository is a clone whose remote is on the lab's Git server.
type repository struct {
	t        *testing.T
	dir, url string
}

func (w *world) repository(t *testing.T, name string) *repository {
	t.Helper()
	r := &repository{t: t, dir: t.TempDir(), url: strings.TrimSuffix(w.status.Git.URL, "/") + "/" + name + ".git"}
	r.git("init", "--quiet", "--initial-branch=main")
	r.git("remote", "add", "origin", r.url)
	return r
}

func (r *repository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", r.dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=e2e", "GIT_AUTHOR_EMAIL=e2e@example.com",
		"GIT_COMMITTER_NAME=e2e", "GIT_COMMITTER_EMAIL=e2e@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// files are paths and contents.
type files map[string]string

// commit writes files (an empty content removes one), commits and pushes, and
// returns the commit.
func (r *repository) commit(change files) string {
	r.t.Helper()
	for name, text := range change {
		path := filepath.Join(r.dir, name)
		if text == "" {
			r.git("rm", "-r", "--quiet", name)
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	r.git("add", "--all")
	r.git("commit", "--quiet", "--allow-empty", "-m", "change")
	return r.push()
}

func (r *repository) push() string {
	r.t.Helper()
	r.git("push", "--quiet", "--force", "origin", "main")
	return r.git("rev-parse", "HEAD")
}

// declare creates a GitRepo for the repository and removes it when the test
// ends, with everything that it deployed.
func (w *world) declare(t *testing.T, name string, r *repository, change ...func(*fleet.GitRepo)) *fleet.GitRepo {
	t.Helper()
	repo := &fleet.GitRepo{
		ObjectMeta: metav1.ObjectMeta{Namespace: registration, Name: name},
		Spec: fleet.GitRepoSpec{
			Repo: r.url, Branch: "main",
			PollingInterval: &metav1.Duration{Duration: time.Second},
			Targets:         []fleet.GitTarget{{Name: "all", ClusterSelector: &metav1.LabelSelector{}}},
		},
	}
	for _, c := range change {
		c(repo)
	}
	if err := w.hub.Create(t.Context(), repo); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.withdraw(t, repo) })
	return repo
}

// withdraw deletes a GitRepo and waits until it is gone.
func (w *world) withdraw(t *testing.T, repo *fleet.GitRepo) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := client.IgnoreNotFound(w.hub.Delete(ctx, repo)); err != nil {
		t.Error(err)
	}
	for ctx.Err() == nil {
		if apierrors.IsNotFound(w.hub.Get(ctx, client.ObjectKeyFromObject(repo), &fleet.GitRepo{})) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("GitRepo %s is not gone after %v", repo.Name, patience)
}

// rolledOut waits until a commit runs everywhere and is reported as Ready.
func (w *world) rolledOut(t *testing.T, repo *fleet.GitRepo, commit string) {
	t.Helper()
	eventually(t, "roll out "+repo.Name, func() error {
		got, err := w.gitRepo(repo)
		if err != nil {
			return err
		}
		ready := fleet.FindCondition(got.Status.Conditions, fleet.ConditionReady)
		if got.Status.Commit != commit || ready == nil || ready.Status != metav1.ConditionTrue || got.Status.Summary.DesiredReady == 0 {
			return fmt.Errorf("commit %.7s (want %.7s), ready %+v, summary %+v", got.Status.Commit, commit, ready, got.Status.Summary)
		}
		return nil
	})
}

func (w *world) gitRepo(repo *fleet.GitRepo) (*fleet.GitRepo, error) {
	got := &fleet.GitRepo{}
	return got, w.hub.Get(context.Background(), client.ObjectKeyFromObject(repo), got)
}

// says waits until the GitRepo is not Ready and its message has all of want.
func (w *world) says(t *testing.T, repo *fleet.GitRepo, want ...string) {
	t.Helper()
	eventually(t, "message of "+repo.Name, func() error {
		got, err := w.gitRepo(repo)
		if err != nil {
			return err
		}
		ready := fleet.FindCondition(got.Status.Conditions, fleet.ConditionReady)
		if ready == nil {
			return errors.New("no Ready condition yet")
		}
		for _, part := range want {
			if !strings.Contains(ready.Message, part) || ready.Status == metav1.ConditionTrue {
				return fmt.Errorf("Ready is %s: %q, which lacks %q", ready.Status, ready.Message, part)
			}
		}
		return nil
	})
}

// deployments returns the deployments of a GitRepo by cluster/bundle.
func (w *world) deployments(t *testing.T, repo string) map[string]fleet.BundleDeployment {
	t.Helper()
	list := &fleet.BundleDeploymentList{}
	if err := w.hub.List(t.Context(), list, client.MatchingLabels{fleet.RepoLabel: repo}); err != nil {
		t.Fatal(err)
	}
	out := map[string]fleet.BundleDeployment{}
	for _, d := range list.Items {
		out[d.Labels[fleet.ClusterLabel]+"/"+d.Name] = d
	}
	return out
}

// digests returns what each cluster has applied, by cluster/bundle.
func (w *world) digests(t *testing.T, repo string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for key, d := range w.deployments(t, repo) {
		out[key] = d.Status.AppliedDeploymentID
	}
	return out
}

// configMap reads a ConfigMap from a spoke.
func (w *world) configMap(spoke, namespace, name string) (*corev1.ConfigMap, error) {
	got := &corev1.ConfigMap{}
	return got, w.spokes[spoke].Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, got)
}

// configMapYAML is a manifest.
func configMapYAML(name, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  value: %q\n", name, value)
}

// hasValue waits for a value in a ConfigMap on each of the spokes.
func (w *world) hasValue(t *testing.T, namespace, name, value string, spokes ...string) {
	t.Helper()
	for _, spoke := range spokes {
		eventually(t, spoke+" has "+name, func() error {
			got, err := w.configMap(spoke, namespace, name)
			if err == nil && got.Data["value"] != value {
				err = fmt.Errorf("value is %q, want %q", got.Data["value"], value)
			}
			return err
		})
	}
}

// all are the names of the lab's spokes.
var all = []string{"dev", "staging", "prod"}
