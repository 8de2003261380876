package deploy

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/deployment"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// versions is a cache that has deployments of these versions, by namespace.
type versions map[string]string

func (v versions) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	version, ok := v[key.Namespace]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	obj.SetResourceVersion(version)
	return nil
}

func (versions) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func TestWritesAhead(t *testing.T) {
	at := func(namespace, version string) *fleet.BundleDeployment {
		return &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "b", ResourceVersion: version}}
	}
	changed := func(namespace, from, to string) deployment.Update {
		return deployment.Update{Old: at(namespace, from), New: at(namespace, to)}
	}
	mixed := deployment.Plan{
		Create: []*fleet.BundleDeployment{at("a", "11"), at("failed", "")},
		Update: []deployment.Update{changed("b", "5", "12"), changed("refused", "99", "99"), changed("c", "6", "9")},
	}
	for name, tt := range map[string]struct {
		plan   deployment.Plan
		cache  versions
		passed time.Duration
		want   bool
	}{
		"nothing written":          {deployment.Plan{}, versions{}, 0, false},
		"nothing came through":     {deployment.Plan{Update: []deployment.Update{changed("b", "5", "5")}}, versions{"b": "5"}, 0, false},
		"the cache has it":         {mixed, versions{"b": "12"}, 0, false},
		"the cache has a newer":    {mixed, versions{"b": "100"}, 0, false},
		"the cache has the former": {mixed, versions{"a": "11", "b": "5"}, 0, true},
		"the cache has none":       {mixed, versions{}, 0, true},
		"it is gone for good":      {mixed, versions{}, cachePatience, false},
	} {
		t.Run(name, func(t *testing.T) {
			var w writes
			bundle, now := types.NamespacedName{Namespace: "ws", Name: "b"}, time.Unix(0, 0)
			w.note(bundle, &tt.plan, now)
			if got := w.ahead(t.Context(), tt.cache, bundle, now.Add(tt.passed)); got != tt.want {
				t.Errorf("ahead: %v, want %v", got, tt.want)
			}
			if _, kept := w.last[bundle]; kept != tt.want {
				t.Errorf("kept: %v, want %v", kept, tt.want)
			}
		})
	}
}
