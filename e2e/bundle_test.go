package e2e

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// TestBundleWrittenByHand deploys a Bundle without Git, pauses it, and deletes
// it: paused content is staged, and promoted when the pause ends.
func TestBundleWrittenByHand(t *testing.T) {
	t.Parallel()
	w := shared
	b := &fleet.Bundle{
		ObjectMeta: metav1.ObjectMeta{Namespace: registration, Name: "by-hand"},
		Spec: fleet.BundleSpec{
			BundleDeploymentOptions: fleet.BundleDeploymentOptions{DefaultNamespace: "by-hand"},
			Resources:               []fleet.BundleResource{{Name: "cm.yaml", Content: configMapYAML("by-hand", "1")}},
			Targets:                 []fleet.BundleTarget{{Name: "prod", ClusterName: "prod"}},
		},
	}
	if err := w.hub.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	w.bundleState(t, b, "", "1/1")
	w.hasValue(t, "by-hand", "by-hand", "1", "prod")

	w.changeBundle(t, b, func(b *fleet.Bundle) {
		b.Spec.Paused, b.Spec.Resources[0].Content = true, configMapYAML("by-hand", "2")
	})
	w.bundleState(t, b, string(fleet.OutOfSync), "0/1")
	w.hasValue(t, "by-hand", "by-hand", "1", "prod")
	w.changeBundle(t, b, func(b *fleet.Bundle) { b.Spec.Paused = false })
	w.hasValue(t, "by-hand", "by-hand", "2", "prod")
	w.bundleState(t, b, "", "1/1")

	if err := w.hub.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the bundle is gone from the hub", func() error {
		return gone(b, w.hub.Get(t.Context(), client.ObjectKeyFromObject(b), b))
	})
	if err := gone(w.configMap("prod", "by-hand", "by-hand")); err != nil {
		t.Errorf("the bundle is gone from the hub, and on the cluster: %v", err)
	}
}

// bundleState waits for what printer columns show of a bundle.
func (w *world) bundleState(t *testing.T, b *fleet.Bundle, state, readyClusters string) {
	t.Helper()
	eventually(t, fmt.Sprintf("bundle %s is %q %s", b.Name, state, readyClusters), func() error {
		got := &fleet.Bundle{}
		if err := w.hub.Get(t.Context(), client.ObjectKeyFromObject(b), got); err != nil {
			return err
		}
		if got.Status.Display.State != state || got.Status.Display.ReadyClusters != readyClusters {
			return fmt.Errorf("display is %+v, conditions %+v", got.Status.Display, got.Status.Conditions)
		}
		return nil
	})
}

func (w *world) changeBundle(t *testing.T, b *fleet.Bundle, change func(*fleet.Bundle)) {
	t.Helper()
	eventually(t, "change bundle "+b.Name, func() error {
		got := &fleet.Bundle{}
		if err := w.hub.Get(t.Context(), client.ObjectKeyFromObject(b), got); err != nil {
			return err
		}
		change(got)
		return w.hub.Update(t.Context(), got)
	})
}
