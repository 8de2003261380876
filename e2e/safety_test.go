package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/lab"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func TestVanishedPathTakesNothingOff(t *testing.T) {
	t.Parallel()
	w := shared
	r := w.repository(t, "vanished")
	repo := w.declare(t, "vanished", r, func(g *fleet.GitRepo) { g.Spec.Paths = []string{"app"} })
	w.rolledOut(t, repo, r.commit(app("vanished", "1")))
	moved := r.commit(files{"app": "", "moved/fleet.yaml": "defaultNamespace: vanished\n", "moved/cm.yaml": configMapYAML("moved", "2")})
	w.says(t, repo, `path "app" matches no directory`, moved)
	w.keeps(t, "vanished", len(all))
	w.hasValue(t, "vanished", "vanished", "1", all...)
	w.edit(t, repo, func(g *fleet.GitRepo) { g.Spec.Paths = []string{"moved"} })
	w.rolledOut(t, repo, moved)
	w.hasValue(t, "vanished", "moved", "2", all...)
	for _, spoke := range all {
		eventually(t, "what is not in Git any more leaves "+spoke, func() error { return gone(w.configMap(spoke, "vanished", "vanished")) })
	}
}

func TestGitServerThatIsDownTakesNothingOff(t *testing.T) {
	w := shared
	r := w.repository(t, "down")
	repo := w.declare(t, "down", r)
	w.rolledOut(t, repo, r.commit(app("down", "1")))
	for _, unit := range []string{lab.Git, lab.HubController} {
		if err := w.lab.StopUnit(unit); err != nil {
			t.Fatal(err)
		}
	}
	// Nor does a hub that has lost its clones.
	if err := os.RemoveAll(filepath.Join(w.status.Dir, "home", lab.HubController)); err != nil {
		t.Fatal(err)
	}
	if err := w.lab.StartUnit(t.Context(), lab.HubController); err != nil {
		t.Fatal(err)
	}
	w.says(t, repo, "cannot reach the Git server", "connection refused")
	w.keeps(t, "down", len(all))
	w.hasValue(t, "down", "down", "1", all...)
	if err := w.lab.StartUnit(t.Context(), lab.Git); err != nil {
		t.Fatal(err)
	}
	w.rolledOut(t, repo, r.commit(app("down", "2")))
	w.hasValue(t, "down", "down", "2", all...)
}

func TestMissingServiceAccountHolds(t *testing.T) {
	t.Parallel()
	w := shared
	r := w.repository(t, "account")
	commit := r.commit(app("account", "1"))
	repo := w.declare(t, "account", r, func(g *fleet.GitRepo) { g.Spec.ServiceAccount = "deployer" })
	w.says(t, repo, "deployer does not exist on this cluster")
	w.appliedNothing(t, "account")
	w.edit(t, repo, func(g *fleet.GitRepo) { g.Spec.ServiceAccount = "" })
	w.rolledOut(t, repo, commit)
}

func TestLimitsOfANamespaceHold(t *testing.T) {
	w := shared
	meta := metav1.ObjectMeta{Namespace: registration, Name: "limits"}
	for kind, limit := range map[string]client.Object{
		"Policy":             &fleet.Policy{ObjectMeta: meta, RequireServiceAccount: true},
		"GitRepoRestriction": &fleet.GitRepoRestriction{ObjectMeta: meta, AllowedRepoPatterns: []string{"https://example.com/.*"}},
	} {
		t.Run(kind, func(t *testing.T) {
			name := "held-" + strings.ToLower(kind)
			r := w.repository(t, name)
			before := w.declare(t, name+"-before", r, func(g *fleet.GitRepo) { g.Spec.Paths = []string{"before"} })
			w.rolledOut(t, before, r.commit(files{"before/fleet.yaml": "defaultNamespace: " + name + "\n", "before/cm.yaml": configMapYAML("before", "1")}))
			w.create(t, w.hub, limit)
			commit := r.commit(app(name, "1"))
			repo := w.declare(t, name, r, func(g *fleet.GitRepo) { g.Spec.Paths = []string{"app"} })
			w.says(t, repo, "held", kind+" fleet-default/limits", "nothing new is deployed")
			w.hasNothing(t, name)
			w.keeps(t, before.Name, len(all))
			if err := w.hub.Delete(t.Context(), limit); err != nil {
				t.Fatal(err)
			}
			w.rolledOut(t, repo, commit)
			w.hasValue(t, name, "before", "1", all...)
		})
	}
}

// One GitRepo may read the repository. That the hub has a clone of it must be
// of no use to others, whatever they ask for.
func TestCredentialsAreNotShared(t *testing.T) {
	t.Parallel()
	w := shared
	r := w.repository(t, "closed")
	commit := r.commit(app("closed", "1"))
	w.gitUsers(t, r, map[string]string{"deployer": "right"})
	w.login(t, "private-right", "deployer", "right")
	w.login(t, "private-wrong", "deployer", "wrong")
	right := w.declare(t, "private-right", r, func(g *fleet.GitRepo) { g.Spec.ClientSecretName = "private-right" })
	w.rolledOut(t, right, commit)

	const refused, asked = "does not accept the credentials", "asks for a login"
	for _, other := range []struct{ name, secret, revision, says string }{
		{"private-wrong", "private-wrong", "", refused},
		{"private-wrong-commit", "private-wrong", commit, refused},
		{"private-none", "", "", asked},
		{"private-none-commit", "", commit, asked},
	} {
		t.Run(other.name, func(t *testing.T) {
			repo := w.declare(t, other.name, r, func(g *fleet.GitRepo) {
				g.Spec.ClientSecretName, g.Spec.Revision = other.secret, other.revision
			})
			w.says(t, repo, other.says)
			if found := w.bundles(t, other.name); len(found) > 0 {
				t.Errorf("%d bundles of a repository that it may not read", len(found))
			}
			got, err := w.gitRepo(repo)
			if err != nil || got.Status.Commit != "" || got.Status.PollingCommit != other.revision {
				t.Errorf("it learned of commit %q, %q: %v", got.Status.Commit, got.Status.PollingCommit, err)
			}
		})
	}
	if got, err := w.gitRepo(right); err != nil || ready(got.Status.Conditions) != nil {
		t.Errorf("the one that may read it: %v, %v", ready(got.Status.Conditions), err)
	}
}

func TestSecondHubIsRefused(t *testing.T) {
	w := shared
	said := w.secondHub(t, t.TempDir())
	if err := says(said, "another hub is active on this API server", "cattle-fleet-system/flotilla-hub", "stop it first"); err != nil {
		t.Error(err)
	}
	said = w.secondHub(t, filepath.Join(w.status.Dir, "home", lab.HubController))
	if err := says(said, "another flotilla-hub uses the cache directory"); err != nil {
		t.Error(err)
	}
}

func TestHubBesideRancherFleetIsRefused(t *testing.T) {
	w := shared
	labels := map[string]string{"app": "fleet-controller"}
	w.create(t, w.hub, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cattle-fleet-system", Name: "fleet-controller"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "rancher/fleet"}}},
			},
		},
	})
	said := w.secondHub(t, t.TempDir())
	err := says(said, "the controller of Rancher Fleet runs here (deployment cattle-fleet-system/fleet-controller)",
		"kubectl -n cattle-fleet-system scale deployment fleet-controller --replicas=0")
	if err != nil {
		t.Error(err)
	}
}

// A hub that loses a cluster's namespace, and then all that it knows, says
// nothing about what should run on the cluster.
func TestHubThatIsLostTakesNothingOff(t *testing.T) {
	t.Parallel()
	w, err := newWorld(t.Context(), filepath.Join(t.TempDir(), "lab"), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.lab.Stop(); err != nil {
			t.Error(err)
		}
	})
	r := w.repository(t, "kept")
	commit := r.commit(app("kept", "1"))
	repo := &fleet.GitRepo{
		ObjectMeta: metav1.ObjectMeta{Namespace: registration, Name: "kept"},
		Spec: fleet.GitRepoSpec{
			Repo: r.url, Branch: "main", CorrectDrift: &fleet.CorrectDrift{Enabled: true},
			Targets: []fleet.GitTarget{{Name: "all", ClusterSelector: &metav1.LabelSelector{}}},
		},
	}
	if err := w.hub.Create(t.Context(), repo); err != nil {
		t.Fatal(err)
	}
	w.rolledOut(t, repo, commit)
	live, err := w.configMap("dev", "kept", "kept")
	if err != nil {
		t.Fatal(err)
	}

	w.loseNamespace(t, "dev")
	w.stillThere(t, live)
	w.loseKinds(t)
	w.stillThere(t, live)
	for _, unit := range []string{lab.HubController, lab.AgentOf("dev")} {
		if err := w.lab.StopUnit(unit); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.lab.StartUnit(t.Context(), lab.AgentOf("dev")); err != nil {
		t.Fatal(err)
	}
	w.stillThere(t, live)
}

// stillThere makes the agent show that it is at work, by putting right what is
// changed by hand, and then that the object is the one that it was.
func (w *world) stillThere(t *testing.T, live *corev1.ConfigMap) {
	t.Helper()
	w.byHand(t, "dev", configMapOf(live.Namespace, live.Name), `{"data":{"value":"by hand"}}`)
	w.hasValue(t, live.Namespace, live.Name, "1", "dev")
	now, err := w.configMap("dev", live.Namespace, live.Name)
	if err != nil || now.UID != live.UID {
		t.Fatalf("the object was taken off and made anew: %v, before %s: %v", now.UID, live.UID, err)
	}
}

// loseNamespace deletes the namespace of a cluster, and waits until it is gone
// or another.
func (w *world) loseNamespace(t *testing.T, cluster string) {
	t.Helper()
	c := &fleet.Cluster{}
	if err := w.hub.Get(t.Context(), client.ObjectKey{Namespace: registration, Name: cluster}, c); err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{}
	if err := w.hub.Get(t.Context(), client.ObjectKey{Name: c.Status.Namespace}, ns); err != nil {
		t.Fatal(err)
	}
	if err := w.hub.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace of "+cluster+" is gone", func() error {
		now := &corev1.Namespace{}
		err := w.hub.Get(t.Context(), client.ObjectKeyFromObject(ns), now)
		if err == nil && now.UID != ns.UID {
			return nil
		}
		if err == nil {
			return fmt.Errorf("it is %s: %+v", now.Status.Phase, now.Status.Conditions)
		}
		return gone(now, err)
	})
}

// loseKinds deletes every kind of the hub, and waits until none is left.
func (w *world) loseKinds(t *testing.T) {
	t.Helper()
	eventually(t, "the kinds are gone", func() error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
		if err := w.hub.List(t.Context(), list); err != nil {
			return err
		}
		var left []error
		for i := range list.Items {
			crd := &list.Items[i]
			if !strings.HasSuffix(crd.GetName(), "."+fleet.Group) {
				continue
			}
			left = append(left, fmt.Errorf("%s is there", crd.GetName()))
			switch since := crd.GetDeletionTimestamp(); {
			case since == nil:
				left = append(left, client.IgnoreNotFound(w.hub.Delete(context.Background(), crd)))
			case time.Since(since.Time) > 10*time.Second:
				// The API server may have met a conflict with itself, and looks
				// again when the kind changes, or minutes later.
				nudge := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/nudge":%q}}}`, time.Now())
				left = append(left, client.IgnoreNotFound(w.hub.Patch(t.Context(), crd, client.RawPatch(types.MergePatchType, nudge))))
			}
		}
		return errors.Join(left...)
	})
}
