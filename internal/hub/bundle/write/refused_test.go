package write

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-sh/flotilla/internal/fault"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

func TestKindsOfRefusals(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	for name, tt := range map[string]struct {
		err  error
		want fault.Kind
	}{
		"nothing":    {nil, fault.None},
		"invalid":    {apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "values", nil), fault.Waiting},
		"too large":  {apierrors.NewRequestEntityTooLargeError("1 MiB"), fault.Waiting},
		"forbidden":  {apierrors.NewForbidden(secrets, "values", errors.New("quota")), fault.Waiting},
		"a conflict": {apierrors.NewConflict(secrets, "values", errors.New("changed")), fault.Transient},
		"away":       {errors.New("connection refused"), fault.Transient},
		"stalled":    {fault.Stall("InvalidValues", errors.New("no map")), fault.Stalled},
	} {
		err := tt.err
		if err != nil {
			err = fmt.Errorf("store the Helm values: %w", err)
		}
		if got := refused(err); fault.KindOf(got) != tt.want || !errors.Is(got, tt.err) {
			t.Errorf("%s: kind %v, want %v: %v", name, fault.KindOf(got), tt.want, got)
		}
	}
}

// TestACollisionMayPass: the one who has the name may go, of which nobody tells
// the one who waits.
func TestACollisionMayPass(t *testing.T) {
	have := &fleet.Bundle{}
	have.Labels = map[string]string{fleet.RepoLabel: "first"}
	err := (&Writer{}).update(t.Context(), Owner{Kind: "GitRepo", Name: "second", Label: fleet.RepoLabel}, have, &fleet.Bundle{})
	if fault.KindOf(err) != fault.Waiting || fault.ReasonOf(err, "") != "NameCollision" {
		t.Errorf("got %v", err)
	}
}
