package hubtest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/hub/lean"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// answers keeps the body of the last answer.
type answers struct {
	next http.RoundTripper
	last string
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := a.next.RoundTrip(r)
	if err != nil {
		return res, err
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	a.last = string(body)
	res.Body = io.NopCloser(strings.NewReader(a.last))
	return res, err
}

// TestLeanWrites: objects are written in full, and only their metadata comes
// back.
func TestLeanWrites(t *testing.T) {
	w := newWorld(t)
	seen := &answers{}
	config := rest.CopyConfig(server.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { seen.next = next; return seen })
	c, err := lean.New(config, client.Options{Scheme: w.client.Scheme()})
	w.must(err)
	const id = "s-0123456789:abc"
	made := &fleet.BundleDeployment{ObjectMeta: w.meta("app"), Spec: fleet.BundleDeploymentSpec{DeploymentID: id}}
	dry := made.DeepCopy()
	w.must(c.Create(w.ctx, dry, client.DryRunAll))
	if w.exists(made.DeepCopy()) {
		t.Fatal("a dry run wrote")
	}
	w.must(c.Create(w.ctx, made))
	if made.UID == "" || made.ResourceVersion == "" || made.Generation != 1 || made.Spec.DeploymentID != id {
		t.Errorf("made %+v", made)
	}
	lean := func(what string) {
		t.Helper()
		if strings.Contains(seen.last, id) {
			t.Errorf("the answer to a %s has the whole object", what)
		}
	}
	lean("create")
	base := made.DeepCopy()
	made.Spec.Paused = true
	made.ManagedFields = []metav1.ManagedFieldsEntry{{}}
	w.must(c.Patch(w.ctx, made, client.MergeFrom(base)))
	lean("patch")
	there := &fleet.BundleDeployment{ObjectMeta: w.meta("app")}
	if !w.exists(there) || there.ResourceVersion != made.ResourceVersion || made.Generation != 2 || !there.Spec.Paused || there.Spec.DeploymentID != id {
		t.Errorf("there is %+v, the writer knows %+v", there, made)
	}
	if len(there.ManagedFields) != 0 {
		t.Errorf("the first change leaves %d managed fields", len(there.ManagedFields))
	}
	// It is not brought back by a report.
	w.must(w.client.Status().Patch(w.ctx, there, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"ready":true}}`))))
	if len(there.ManagedFields) != 0 {
		t.Errorf("a report brings back %d managed fields", len(there.ManagedFields))
	}
	w.must(c.Delete(w.ctx, made))
	large := &corev1.ConfigMap{ObjectMeta: w.meta("large"), BinaryData: map[string][]byte{"a": []byte(id)}}
	w.must(c.Create(w.ctx, large))
	lean("create of a built-in kind")
	if got := (&corev1.ConfigMap{ObjectMeta: w.meta("large")}); !w.exists(got) || string(got.BinaryData["a"]) != id {
		t.Errorf("stored is %v", got.BinaryData)
	}
}

// TestRefusedWrites: what the API server says reaches the one who must act.
func TestRefusedWrites(t *testing.T) {
	w := newWorld(t)
	c, err := lean.New(rest.CopyConfig(server.config), client.Options{Scheme: w.client.Scheme()})
	w.must(err)
	invalid := &corev1.ConfigMap{ObjectMeta: w.meta("large"), Data: map[string]string{"no key": "1"}}
	if err := c.Create(w.ctx, invalid); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "data[no key]") {
		t.Errorf("of an invalid object: %v", err)
	}
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "stays", Finalizers: []string{"flotilla.sh/test"}}})
	stays := &corev1.ConfigMap{ObjectMeta: w.meta("stays")}
	t.Cleanup(func() { w.drop(stays) })
	if err := c.Create(w.ctx, stays); !apierrors.IsAlreadyExists(err) {
		t.Errorf("of what is there: %v", err)
	}
	w.must(w.client.Delete(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}))
	w.must(poll(func() (bool, error) {
		err := c.Create(w.ctx, &corev1.ConfigMap{ObjectMeta: w.meta("late")}, client.DryRunAll)
		if err != nil && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			t.Fatalf("in a namespace that goes: %v", err)
		}
		return err != nil, nil
	}))
}
