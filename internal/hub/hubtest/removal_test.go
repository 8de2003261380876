package hubtest_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/hub/removal"
	"github.com/flotilla-sh/flotilla/internal/lab/labtest"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// blocker keeps what is being deleted.
const blocker = "flotilla.test/blocker"

func TestDeliberate(t *testing.T) {
	for name, tt := range map[string]struct {
		// gone is what is deleted besides the object.
		gone func(w *world)
		want bool
	}{
		"object alone": {func(*world) {}, true},
		"namespace terminating": {func(w *world) {
			w.must(w.client.Delete(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}))
		}, false},
		"kind terminating": {terminateGitRepos, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			repo := &fleet.GitRepo{ObjectMeta: w.meta("app"), Spec: fleet.GitRepoSpec{Repo: "https://git.example/app"}}
			repo.Finalizers = []string{blocker}
			w.create(repo)
			t.Cleanup(func() { w.release(repo) })
			w.must(w.client.Delete(w.ctx, repo))
			tt.gone(w)
			got, err := removal.Deliberate(w.ctx, w.client, repo, "gitrepos")
			if err != nil || got != tt.want {
				t.Errorf("got %v, %v, want %v", got, err, tt.want)
			}
		})
	}
}

func TestNothingIsDeliberateWhereTheNamespaceIsGone(t *testing.T) {
	w := newWorld(t)
	repo := &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: "nowhere", Name: "app"}}
	if got, err := removal.Deliberate(w.ctx, w.client, repo, "gitrepos"); got || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

// terminateGitRepos deletes the kind; the end of the test makes it anew.
func terminateGitRepos(w *world) {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "gitrepos.fleet.cattle.io"}}
	if !w.exists(crd) {
		w.Fatal("there is no CRD")
	}
	fresh := &apiextensionsv1.CustomResourceDefinition{Spec: crd.Spec}
	fresh.Name = crd.Name
	w.must(w.client.Delete(w.ctx, crd))
	w.Cleanup(func() {
		w.release(crd)
		w.must(poll(func() (bool, error) {
			err := w.client.Get(context.Background(), client.ObjectKeyFromObject(crd), crd)
			return err != nil, client.IgnoreNotFound(err)
		}))
		w.must(w.client.Create(context.Background(), fresh))
		w.must(labtest.Served(context.Background(), w.client, fresh))
	})
}

// release drops all finalizers.
func (w *world) release(obj client.Object) {
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	w.must(client.IgnoreNotFound(w.client.Patch(context.Background(), obj, patch)))
}
