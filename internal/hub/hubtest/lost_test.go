package hubtest_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/content/kube"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// TestWhatIsLostBesideItsRootComesBack deletes the Secrets that belong to what a
// cluster runs, and starts the hub anew.
func TestWhatIsLostBesideItsRootComesBack(t *testing.T) {
	w := newWhole(t)
	stop := w.start()
	spaces := w.clusters(1)
	b := &fleet.Bundle{ObjectMeta: w.meta("app")}
	b.Spec.Resources = []fleet.BundleResource{{Name: "a.yaml", Content: "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: default}\nstringData: {v: hunter2}\n"}}
	b.Spec.Targets = []fleet.BundleTarget{{ClusterSelector: &metav1.LabelSelector{}}}
	w.create(b)
	w.agents(spaces, b.Name)
	stop()
	secrets := func() []corev1.Secret {
		list := &corev1.SecretList{}
		w.must(w.client.List(w.ctx, list, client.InNamespace(spaces[0]), client.HasLabels{kube.ManagedLabel}))
		return list.Items
	}
	lost := secrets()
	if len(lost) == 0 {
		t.Fatal("nothing is stored in the cluster's namespace")
	}
	for i := range lost {
		w.must(w.client.Delete(w.ctx, &lost[i]))
	}
	w.start()
	w.eventually("store it anew", func() bool { return len(secrets()) == len(lost) })
	if sent, _ := w.sent(spaces[0], b.Name); sent == "" {
		t.Error("an agent cannot fetch it")
	}
}

// TestStoreMissesParts takes parts of what is stored away, and asks for the whole.
func TestStoreMissesParts(t *testing.T) {
	w := newWorld(t)
	objects := large()
	first, second := w.encode(objects[:70]...), w.encode(objects...)
	w.must(kube.New(w.client).Put(w.ctx, first, w.namespace))
	store := kube.New(w.client)
	w.must(store.Put(w.ctx, second, w.namespace))
	has := func(s *kube.Store, want bool) {
		t.Helper()
		if got, err := s.Has(w.ctx, content.Ref{Name: second.Root.Name}, w.namespace); err != nil || got != want {
			t.Errorf("it is stored: %v, %v; want %v", got, err, want)
		}
	}
	has(store, true)
	has(kube.New(w.client), true)
	// The first root's parcel has most chunks of the second.
	root := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.ContentNamespace, Name: second.Root.Name}}
	if !w.exists(root) || root.Annotations[content.ParcelsAnnotation] == "" {
		t.Fatalf("the second root counts on no parcel: %v", root.Annotations)
	}
	secret := &corev1.Secret{ObjectMeta: w.meta(root.Annotations[kube.ChunksAnnotation])}
	parcel := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.ContentNamespace, Name: root.Annotations[content.ParcelsAnnotation]}}
	for _, lost := range []client.Object{secret, parcel} {
		w.must(w.client.Delete(w.ctx, lost))
		again := kube.New(w.client)
		has(again, false)
		w.must(again.Put(w.ctx, second, w.namespace))
		has(again, true)
		has(kube.New(w.client), true)
		if _, _, err := content.FetchObjects(w.ctx, again.In(w.namespace), keeper{}, second.Root.Ref); err != nil {
			t.Error(err)
		}
	}
}
