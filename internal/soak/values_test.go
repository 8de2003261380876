package soak_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// TestValuesOfTheClusterAreFollowed changes values on a cluster: they are
// deployed within minutes, and nothing else is rendered again meanwhile.
func TestValuesOfTheClusterAreFollowed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := worldInMemory(t, 1, 1, virtual)
		w.watch = nil // its model knows no such bundle
		ctx, spoke := context.Background(), w.direct.spokes[0]
		values := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "values"}, Data: map[string]string{"values.yaml": "colour: red"}}
		w.must(spoke.Create(ctx, values))
		w.start()
		spec := fleet.BundleSpec{
			Targets: []fleet.BundleTarget{{ClusterSelector: &metav1.LabelSelector{}}},
			Resources: []fleet.BundleResource{
				{Name: "Chart.yaml", Content: "apiVersion: v2\nname: web\nversion: 1.0.0\n"},
				{Name: "templates/cm.yaml", Content: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: paint}\ndata: {colour: \"{{ .Values.colour }}\", random: \"{{ randAlphaNum 9 }}\"}\n"},
			},
		}
		spec.DefaultNamespace = "default"
		spec.Helm = &fleet.HelmOptions{ValuesFrom: []fleet.ValuesFrom{{ConfigMapKeyRef: &fleet.ConfigMapKeySelector{
			LocalObjectReference: fleet.LocalObjectReference{Name: "values"},
		}}}}
		w.must(w.direct.hub.Create(ctx, &fleet.Bundle{ObjectMeta: w.meta("web"), Spec: spec}))

		painted := func(colour string, within time.Duration) string {
			t.Helper()
			cm := &corev1.ConfigMap{}
			for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(time.Second) {
				err := spoke.Get(ctx, client.ObjectKey{Namespace: "default", Name: "paint"}, cm)
				if err == nil && cm.Data["colour"] == colour {
					return cm.Data["random"]
				}
			}
			t.Fatalf("not %s within %s: %v\n%s", colour, within, cm.Data, w.story())
			return ""
		}
		first := painted("red", 10*time.Minute)
		time.Sleep(2 * time.Hour)
		if again := painted("red", time.Second); again != first {
			t.Errorf("rendered again without a reason: %s, was %s", again, first)
		}
		values.Data["values.yaml"] = "colour: blue"
		w.must(spoke.Update(ctx, values))
		painted("blue", 7*time.Minute)

		// What is gone has not changed.
		w.must(spoke.Delete(ctx, values))
		time.Sleep(time.Hour)
		painted("blue", time.Second)
		w.stop()
	})
}
