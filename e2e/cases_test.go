package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/lab/gitserver"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// edit changes the spec of a GitRepo.
func (w *world) edit(t *testing.T, repo *fleet.GitRepo, change func(*fleet.GitRepo)) {
	t.Helper()
	eventually(t, "edit GitRepo "+repo.Name, func() error {
		got, err := w.gitRepo(repo)
		if err != nil {
			return err
		}
		change(got)
		return w.hub.Update(t.Context(), got)
	})
}

// gitServer reaches the repositories of the lab's Git server.
func (w *world) gitServer(t *testing.T) *gitserver.Server {
	t.Helper()
	server, err := gitserver.New(w.status.Git.Root)
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// gitUsers lets only these users, by name and password, into a repository.
func (w *world) gitUsers(t *testing.T, r *repository, passwords map[string]string) {
	t.Helper()
	name := strings.TrimSuffix(path.Base(r.url), ".git")
	if err := w.gitServer(t).SetUsers(name, passwords); err != nil {
		t.Fatal(err)
	}
}

// login makes a Secret with a user and password for the lab's Git server.
func (w *world) login(t *testing.T, name, user, password string) {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: registration, Name: name},
		Type:       corev1.SecretTypeBasicAuth,
		StringData: map[string]string{corev1.BasicAuthUsernameKey: user, corev1.BasicAuthPasswordKey: password},
	}
	w.create(t, w.hub, secret)
}

// create makes an object that is deleted when the test ends.
func (w *world) create(t *testing.T, c client.Client, obj client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(c.Delete(context.Background(), obj)); err != nil {
			t.Error(err)
		}
	})
}

// only makes a GitRepo deploy to one cluster.
func only(cluster string) func(*fleet.GitRepo) {
	return func(repo *fleet.GitRepo) {
		repo.Spec.Targets = []fleet.GitTarget{{Name: cluster, ClusterName: cluster}}
	}
}

// bundles returns the Bundles of a GitRepo.
func (w *world) bundles(t *testing.T, repo string) []fleet.Bundle {
	t.Helper()
	list := &fleet.BundleList{}
	err := w.hub.List(t.Context(), list, client.InNamespace(registration), client.MatchingLabels{fleet.RepoLabel: repo})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// keeps checks that nothing of a GitRepo is on its way out: neither a Bundle
// nor a deployment is marked or deleted.
func (w *world) keeps(t *testing.T, repo string, deployments int) {
	t.Helper()
	for _, b := range w.bundles(t, repo) {
		if b.DeletionTimestamp != nil {
			t.Errorf("bundle %s is being deleted", b.Name)
		}
	}
	found := w.deployments(t, repo)
	for key, d := range found {
		if d.Spec.Removal != nil || d.DeletionTimestamp != nil {
			t.Errorf("deployment %s is being removed: mark %+v, deleted at %v", key, d.Spec.Removal, d.DeletionTimestamp)
		}
	}
	if len(found) != deployments {
		t.Errorf("deployments: %v, want %d", slices.Sorted(maps.Keys(found)), deployments)
	}
}

// hasNothing checks that a GitRepo has put nothing on any cluster: what it
// deploys has the name of its namespace.
func (w *world) hasNothing(t *testing.T, repo string) {
	t.Helper()
	for key, d := range w.deployments(t, repo) {
		if d.Spec.Content != nil || d.Status.AppliedDeploymentID != "" {
			t.Errorf("deployment %s has content", key)
		}
	}
	w.appliedNothing(t, repo)
}

// appliedNothing checks that no cluster has the ConfigMap of a repository.
func (w *world) appliedNothing(t *testing.T, repo string) {
	t.Helper()
	for spoke := range w.spokes {
		if err := gone(w.configMap(spoke, repo, repo)); err != nil {
			t.Errorf("%s has a ConfigMap that should have been held back: %v", spoke, err)
		}
	}
}

// app is a directory with a ConfigMap that has the name of its namespace.
func app(name, value string) files {
	return files{"app/fleet.yaml": "defaultNamespace: " + name + "\n", "app/cm.yaml": configMapYAML(name, value)}
}

// statusText is what "flotilla status" says of a GitRepo.
func (w *world) statusText(t *testing.T, repo string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "flotilla"), "status", repo, "--kubeconfig="+w.status.Hub.Kubeconfig)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("flotilla status %s: %v: %s", repo, err, out)
	}
	return string(out)
}

// secondHub starts one more hub on the lab's hub, which is expected to end with
// an error, and returns what it said.
func (w *world) secondHub(t *testing.T, cacheDir string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "flotilla-hub"),
		"--kubeconfig="+filepath.Join(w.status.Dir, "hub-controller.kubeconfig"), "--cache-dir="+cacheDir, "--metrics-bind-address=0")
	out, err := cmd.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		t.Fatalf("the second hub was not refused: %v: %s", err, out)
	}
	return string(out)
}

// says is an error where a text lacks one of the parts.
func says(text string, parts ...string) error {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return fmt.Errorf("%q lacks %q", text, part)
		}
	}
	return nil
}

// deploymentOf reads a Deployment from a spoke.
func (w *world) deploymentOf(spoke, namespace, name string) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}
	return d, w.spokes[spoke].Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, d)
}

// ready returns an error that says why a Ready condition is not True.
func ready(conditions []fleet.Condition) error {
	c := fleet.FindCondition(conditions, fleet.ConditionReady)
	if c == nil {
		return errors.New("there is no Ready condition")
	}
	if c.Status != metav1.ConditionTrue {
		return fmt.Errorf("Ready is %s: %s: %s", c.Status, c.Reason, c.Message)
	}
	return nil
}
