package summary

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-sh/flotilla/internal/status"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// A commit may change a bundle and none of its deployments. The last that
// happens then is that the bundle has caught up, and its repository waits for
// that.
func TestBundleThatCatchesUpConcernsItsRepository(t *testing.T) {
	bundle := func(generation, observed int64) *fleet.Bundle {
		return &fleet.Bundle{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "fleet-default", Name: "shop-app", Generation: generation,
				Labels: map[string]string{fleet.RepoLabel: "shop"},
			},
			Status: fleet.BundleStatus{ObservedGeneration: observed},
		}
	}
	repo := status.Parent{Kind: status.KindGitRepo, Name: types.NamespacedName{Namespace: "fleet-default", Name: "shop"}}
	c := &Controller{board: status.NewBoard()}
	c.seeBundle(nil, bundle(1, 1))
	for _, step := range []struct {
		name        string
		before, now *fleet.Bundle
		want        bool
	}{
		{"changed", bundle(1, 1), bundle(2, 1), true},
		{"nothing new", bundle(2, 1), bundle(2, 1), false},
		{"caught up", bundle(2, 1), bundle(2, 2), true},
	} {
		if got := slices.Contains(c.seeBundle(step.before, step.now), repo); got != step.want {
			t.Errorf("%s: the repository's status is looked at: %t, want %t", step.name, got, step.want)
		}
	}
}
