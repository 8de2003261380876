package hubtest_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/names"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// pairs are Clusters that come to one namespace on the hub. In the first three
// tenants have chosen the name so that it comes to that of another's, whose
// namespace begins with theirs. Each is for one test, so that none waits until the
// namespace of another is gone.
var pairs = [][2]types.NamespacedName{
	{{Namespace: "team-a", Name: "production-europe-west-one-checkout-cluster-for-orders-1704"}, {Namespace: "team", Name: "a-production-europe-west-one-checkout-cluster-for-orders-2909"}},
	{{Namespace: "team-a", Name: "production-europe-west-one-checkout-cluster-for-orders-1804"}, {Namespace: "team", Name: "a-production-europe-west-one-checkout-cluster-for-orders-2018"}},
	{{Namespace: "team-a", Name: "production-europe-west-one-checkout-cluster-for-orders-2292"}, {Namespace: "team", Name: "a-production-europe-west-one-checkout-cluster-for-orders-2289"}},
	{{Namespace: "edge", Name: "retail-production-europe-west-one-store-number-551"}, {Namespace: "edge", Name: "retail-production-europe-west-one-store-number-663"}},
	{{Namespace: "edge", Name: "retail-production-europe-west-one-store-number-159"}, {Namespace: "edge", Name: "retail-production-europe-west-one-store-number-1746"}},
}

// contest is a hub's part that registers Clusters, with a pair of them.
type contest struct {
	first, second *registration
	space         *corev1.Namespace
}

func newContest(t *testing.T, pair int) *contest {
	t.Helper()
	w := newWorld(t)
	of := func(key types.NamespacedName) *registration {
		w.must(client.IgnoreAlreadyExists(w.client.Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.Namespace}})))
		r := &registration{
			world: w, counter: &counter{Client: w.client}, space: names.ClusterNamespace(key.Namespace, key.Name),
			cluster: &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}},
		}
		w.create(r.cluster)
		w.Cleanup(func() { w.drop(r.cluster) })
		return r
	}
	c := &contest{first: of(pairs[pair][0]), second: of(pairs[pair][1])}
	if c.first.space != c.second.space {
		t.Fatalf("%s is not %s", c.first.space, c.second.space)
	}
	c.space = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.first.space}}
	w.Cleanup(func() { w.drop(c.space) })
	return c
}

// drop deletes an object without asking anybody who wants to be.
func (w *world) drop(obj client.Object) {
	w.Helper()
	ctx := context.Background()
	w.must(client.IgnoreNotFound(w.client.Delete(ctx, obj)))
	w.must(client.IgnoreNotFound(w.client.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))))
}

// stalls tells whether a Cluster has no namespace, and says who has it.
func (r *registration) stalls(other *fleet.Cluster) bool {
	c := fleet.FindCondition(r.cluster.Status.Conditions, fleet.ConditionProcessed)
	return r.cluster.Status.Namespace == "" && c != nil && c.Status == metav1.ConditionFalse && c.Reason == "NamespaceTaken" &&
		strings.Contains(c.Message, r.space) && strings.Contains(c.Message, other.Namespace+"/"+other.Name)
}

// blind is a cache that has not heard of a namespace yet.
type blind struct {
	client.Client
	namespace string
}

func (b *blind) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if key.Name == b.namespace {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, key.Name)
	}
	return b.Client.Get(ctx, key, obj, opts...)
}

// TestTheSecondClusterOfANamespaceStalls: it gets nothing of the first, and takes
// nothing along.
func TestTheSecondClusterOfANamespaceStalls(t *testing.T) {
	for pair, tt := range []struct {
		name   string
		before func(*contest)
	}{
		{"a new one", func(*contest) {}},
		{"its cache is behind", func(c *contest) { c.second.counter.Client = &blind{c.first.client, c.first.space} }},
		{"an earlier hub took it in", func(c *contest) { c.second.takenIn() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newContest(t, pair+2)
			c.first.reconcile()
			tt.before(c)
			c.second.reconcile()
			if !c.second.stalls(c.first.cluster) {
				t.Errorf("the second has %q, %+v", c.second.cluster.Status.Namespace, c.second.cluster.Status.Conditions)
			}
			deployment := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: c.first.space, Name: "app", Finalizers: []string{fleet.Finalizer}}}
			c.first.create(deployment)
			t.Cleanup(func() { c.first.drop(deployment) })

			c.second.must(c.second.client.Delete(c.second.ctx, c.second.cluster))
			c.second.reconcile()
			if c.second.exists(c.second.cluster) {
				t.Error("the second Cluster cannot go")
			}
			if !c.first.exists(c.space) || !c.space.DeletionTimestamp.IsZero() {
				t.Error("the namespace of the first goes with the second")
			}
			if !c.first.exists(deployment) || len(deployment.Finalizers) == 0 {
				t.Errorf("a deployment of the first is let go: %v", deployment.Finalizers)
			}
			if n := c.first.reconcile(); n != 0 || c.first.cluster.Status.Namespace != c.first.space {
				t.Errorf("the first: %d writes, namespace %q", n, c.first.cluster.Status.Namespace)
			}
		})
	}
}

// takenIn is what a hub has written that asked nobody whose a namespace is.
func (r *registration) takenIn() {
	r.Helper()
	base := r.cluster.DeepCopy()
	r.cluster.Status.Namespace = r.space
	fleet.SetCondition(&r.cluster.Status.Conditions, fleet.Condition{Type: fleet.ConditionProcessed, Status: metav1.ConditionTrue}, r.clock.Now())
	r.must(r.client.Status().Patch(r.ctx, r.cluster, client.MergeFrom(base)))
}

// TestANamespaceThatSaysNothingIsTakenByOne: somebody made it by hand, or took its
// annotations off.
func TestANamespaceThatSaysNothingIsTakenByOne(t *testing.T) {
	c := newContest(t, 1)
	c.space.Annotations = map[string]string{"kept": "yes"}
	c.first.create(c.space)
	c.first.reconcile()
	c.second.reconcile()
	if c.first.cluster.Status.Namespace != c.first.space || !c.second.stalls(c.first.cluster) {
		t.Errorf("the first has %q, the second %q", c.first.cluster.Status.Namespace, c.second.cluster.Status.Namespace)
	}
	if c.first.exists(c.space); c.space.Annotations[fleet.ClusterLabel] != c.first.cluster.Name || c.space.Annotations["kept"] != "yes" {
		t.Errorf("the namespace says %v", c.space.Annotations)
	}
}

// TestAContestedNamespaceIsNoTarget follows the same through a whole hub: what the
// second tenant deploys to all his clusters does not reach the first's, and where
// that goes the second gets its place by itself.
func TestAContestedNamespaceIsNoTarget(t *testing.T) {
	w := newWhole(t)
	w.start()
	c := newContest(t, 0)
	registered := func(r *registration) bool { return r.exists(r.cluster) && r.cluster.Status.Namespace == r.space }
	stalled := func(r, other *registration) bool { return r.exists(r.cluster) && r.stalls(other.cluster) }
	w.eventually("register one of them", func() bool {
		return registered(c.first) && stalled(c.second, c.first) || registered(c.second) && stalled(c.first, c.second)
	})
	has, waits := c.first, c.second
	if registered(c.second) {
		has, waits = c.second, c.first
	}
	for _, r := range []*registration{has, waits} {
		b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: r.cluster.Namespace, Name: "of-" + r.cluster.Namespace}}
		b.Spec.Resources = configMap("one")
		b.Spec.Targets = []fleet.BundleTarget{{ClusterSelector: &metav1.LabelSelector{}}}
		w.create(b)
		t.Cleanup(func() { w.drop(b) })
	}
	report := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: has.space, Name: fleet.CapabilitiesName}}
	w.must(w.client.Get(w.ctx, client.ObjectKeyFromObject(report), report))
	w.edit(report, func() { report.Data = map[string]string{fleet.CapabilitiesVersionKey: "v1.36.3"} })
	deployed := func() []string {
		list := &fleet.BundleDeploymentList{}
		w.must(w.client.List(w.ctx, list, client.InNamespace(has.space)))
		var out []string
		for i := range list.Items {
			w.Cleanup(func() { w.drop(&list.Items[i]) })
			out = append(out, list.Items[i].Name)
		}
		return out
	}
	mine := "of-" + has.cluster.Namespace
	w.eventually("deploy", func() bool { return slices.Contains(deployed(), mine) })
	w.rest()
	if got := deployed(); !slices.Equal(got, []string{mine}) {
		t.Errorf("the namespace has %v, want %s alone", got, mine)
	}
	w.must(w.client.Delete(w.ctx, has.cluster))
	w.eventually("go on with the other", func() bool { return registered(waits) })
}

// TestPlacesOfLongNames: a name of a Secret, and a reference, may be longer than a
// hash looks that is cut.
func TestPlacesOfLongNames(t *testing.T) {
	w := newWorld(t)
	r, long, found := w.registries(), strings.Repeat("long-", 40), map[string]bool{}
	for _, end := range []string{"a", "b"} {
		secret := w.registrySecret(map[string][]byte{"reference": []byte("registry.example.org/" + long + end)})
		secret.Name = long + end
		w.create(secret)
		place, err := placeOf(w, r, &fleet.Bundle{ObjectMeta: w.meta("app"), Spec: fleet.BundleSpec{OCIRegistrySecret: secret.Name}})
		w.must(err)
		found[place.Name] = true
	}
	if len(found) != 2 {
		t.Errorf("two registries have one Secret: %v", found)
	}
}
