package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/content/registry"
	"github.com/flotilla-sh/flotilla/internal/content/registry/registrytest"
	"github.com/flotilla-sh/flotilla/internal/lab"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// TestContentInARegistry sends a GitRepo through an OCI registry, which then
// goes away.
func TestContentInARegistry(t *testing.T) {
	w := shared
	server := registrytest.Start(t, true)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: registration, Name: "registry"}, Type: fleet.OCIStorageType, Data: server.Data(),
	}
	secret.Data["password"] = []byte("wrong")
	if err := w.hub.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	r := w.repository(t, "far")
	repo := w.declare(t, "far", r, func(g *fleet.GitRepo) { g.Spec.OCIRegistrySecret = secret.Name })
	commit := r.commit(files{
		"app/fleet.yaml": "defaultNamespace: far\ncorrectDrift: {enabled: true}\n", "app/cm.yaml": configMapYAML("far", "1"),
	})
	eventually(t, "the bundle says that the registry refuses the hub", func() error {
		b := &fleet.Bundle{}
		if err := w.hub.Get(t.Context(), client.ObjectKey{Namespace: registration, Name: "far-app"}, b); err != nil {
			return err
		}
		if c := fleet.FindCondition(b.Status.Conditions, fleet.ConditionRendered); c == nil || c.Reason != registry.ReasonUnauthorized {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	})
	secret.Data["password"] = []byte(registrytest.Password)
	if err := w.hub.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	w.rolledOut(t, repo, commit)
	w.hasValue(t, "far", "far", "1", all...)

	server.Stop()
	if err := w.lab.StopUnit(lab.AgentOf("dev")); err != nil {
		t.Fatal(err)
	}
	got, err := w.configMap("dev", "far", "far")
	if err != nil {
		t.Fatal(err)
	}
	got.Data["value"] = "edited"
	if err := w.spokes["dev"].Update(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	if err := w.lab.StartUnit(t.Context(), lab.AgentOf("dev")); err != nil {
		t.Fatal(err)
	}
	w.hasValue(t, "far", "far", "1", all...)
}
