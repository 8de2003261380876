package hubtest_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/content/kube"
	"github.com/flotilla-sh/flotilla/internal/content/registry/registrytest"
	"github.com/flotilla-sh/flotilla/internal/fault"
	"github.com/flotilla-sh/flotilla/internal/hub/content/gc"
	"github.com/flotilla-sh/flotilla/internal/hub/registries"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func (w *world) registries() *registries.Registries {
	return registries.New(w.client, w.key(), client.ObjectKey{}, w.clock)
}

// registrySecret is the Secret with the access to a registry.
func (w *world) registrySecret(data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: w.meta("registry"), Type: fleet.OCIStorageType, Data: data}
}

func (w *world) bundle() *fleet.Bundle {
	return &fleet.Bundle{ObjectMeta: w.meta("app"), Spec: fleet.BundleSpec{OCIRegistrySecret: "registry"}}
}

func placeOf(w *world, r *registries.Registries, b *fleet.Bundle) (*registries.Place, error) {
	return r.At(w.ctx, r.Key(b))
}

func TestSecretOfARegistry(t *testing.T) {
	for name, tt := range map[string]struct {
		secret func(*world) *corev1.Secret
		says   string
	}{
		"missing":      {func(*world) *corev1.Secret { return nil }, "there is no Secret"},
		"wrong type":   {func(w *world) *corev1.Secret { return &corev1.Secret{ObjectMeta: w.meta("registry")} }, `has the type "Opaque"`},
		"no reference": {func(w *world) *corev1.Secret { return w.registrySecret(nil) }, "the key reference is missing"},
		"no path": {func(w *world) *corev1.Secret {
			return w.registrySecret(map[string][]byte{"reference": []byte("registry.example.org/UPPER")})
		}, "names no repository"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if secret := tt.secret(w); secret != nil {
				w.create(secret)
			}
			if _, err := placeOf(w, w.registries(), w.bundle()); fault.KindOf(err) != fault.Stalled || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestStandardRegistry is --content-registry-secret: the place of bundles that
// name none.
func TestStandardRegistry(t *testing.T) {
	w := newWorld(t)
	data := func(path string) map[string][]byte {
		return map[string][]byte{"reference": []byte("registry.example.org/" + path)}
	}
	standard := &corev1.Secret{ObjectMeta: w.meta("standard"), Type: fleet.OCIStorageType, Data: data("standard")}
	w.create(standard)
	w.create(w.registrySecret(data("own")))
	plain := &fleet.Bundle{ObjectMeta: w.meta("plain")}
	r := registries.New(w.client, w.key(), client.ObjectKeyFromObject(standard), w.clock)
	of := func(bundle *fleet.Bundle) string {
		t.Helper()
		place, err := placeOf(w, r, bundle)
		w.must(err)
		w.must(place.Grant(w.ctx, w.namespace))
		copied := &corev1.Secret{ObjectMeta: w.meta(place.Name)}
		if !w.exists(copied) {
			t.Fatal("no Secret for the agent")
		}
		return string(copied.Data["reference"])
	}
	if got := of(plain); !strings.HasPrefix(got, "registry.example.org/standard/") {
		t.Errorf("a bundle that names none goes to %s", got)
	}
	if got := of(w.bundle()); !strings.HasPrefix(got, "registry.example.org/own/") {
		t.Errorf("a bundle that names one goes to %s", got)
	}
	if key := w.registries().Key(plain); key.Name != "" {
		t.Errorf("without the flag: %s", key)
	}
}

// TestAgentsGetAccess follows the Secret of one agent.
func TestAgentsGetAccess(t *testing.T) {
	w := newWorld(t)
	server := registrytest.Start(t, true)
	data := server.Data()
	data["agentUsername"], data["agentPassword"] = []byte("reader"), []byte("1")
	source := w.registrySecret(data)
	w.create(source)
	r := w.registries()
	grant := func() *corev1.Secret {
		t.Helper()
		place, err := placeOf(w, r, w.bundle())
		w.must(err)
		w.must(place.Grant(w.ctx, w.namespace))
		copied := &corev1.Secret{ObjectMeta: w.meta(place.Name)}
		if !w.exists(copied) {
			t.Fatal("no Secret for the agent")
		}
		return copied
	}
	first := grant()
	if string(first.Data["username"]) != "reader" || strings.Contains(string(first.Data["password"]), registrytest.Password) {
		t.Errorf("the agent got %s", first.Data)
	}
	if r = w.registries(); grant().ResourceVersion != first.ResourceVersion {
		t.Error("a restarted hub wrote what was there")
	}
	source.Data["agentPassword"] = []byte("2")
	w.must(w.client.Update(w.ctx, source))
	second := grant()
	if second.Name != first.Name || string(second.Data["password"]) != "2" {
		t.Errorf("after a change the agent has %s in %s", second.Data, second.Name)
	}
	w.must(w.client.Delete(w.ctx, second)) // with the namespace of a Cluster that comes back
	r.ForgetNamespace(w.namespace)
	second = grant()
	w.must(w.client.Delete(w.ctx, second)) // by somebody
	_ = r.Sweep(w.ctx, nil, gc.Grace)
	second = grant()
	used := []fleet.BundleDeployment{{ObjectMeta: w.meta("app"), Spec: fleet.BundleDeploymentSpec{Content: &fleet.ContentRef{Registry: second.Name}}}}
	w.clock.SetTime(time.Now().Add(2 * gc.Grace))
	w.must(w.client.Delete(w.ctx, source)) // the server would refuse the reader
	// Other tests have registries too, some of which answer no more.
	_ = r.Sweep(w.ctx, used, gc.Grace)
	if !w.exists(second) {
		t.Fatal("access that is used was taken away")
	}
	_ = r.Sweep(w.ctx, nil, gc.Grace)
	if w.exists(second) {
		t.Error("access that nothing uses is left")
	}
}

// TestSweepKeepsSecretsOfContentInARegistry lets sweeps meet the secret chunks
// of a root that is stored elsewhere.
func TestSweepKeepsSecretsOfContentInARegistry(t *testing.T) {
	w := newWorld(t)
	store, enc := kube.New(w.client), w.encode(large()...)
	w.must(store.PutSecrets(w.ctx, enc, w.namespace))
	w.create(&fleet.BundleDeployment{ObjectMeta: w.meta("app"), Spec: fleet.BundleDeploymentSpec{
		Content: &fleet.ContentRef{Digest: enc.Root.Digest, Name: enc.Root.Name, Registry: "registry"},
	}})
	var secret client.Object
	for _, b := range enc.Chunks {
		if b.Secret {
			secret = &corev1.Secret{ObjectMeta: w.meta(b.Name)}
		}
	}
	for range 3 {
		w.must(w.collector(store).Sweep(w.ctx))
		w.clock.Step(gc.Grace)
	}
	if !w.exists(secret) || secret.GetAnnotations()[kube.UnusedAnnotation] != "" {
		t.Error("a Secret that is used was swept")
	}
	w.must(w.client.Delete(w.ctx, &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "app"}}))
	for range 2 {
		w.must(w.collector(store).Sweep(w.ctx))
		w.clock.Step(gc.Grace)
	}
	if w.exists(secret) {
		t.Error("a Secret that nothing uses is left")
	}
}
