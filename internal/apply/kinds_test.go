package apply

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// aggregator serves kinds of its own, and those of a server that may be away.
func aggregator(t *testing.T, away *atomic.Bool) *Kinds {
	t.Helper()
	kind := func(gv schema.GroupVersion, name, resource string) apidiscoveryv2.APIVersionDiscovery {
		return apidiscoveryv2.APIVersionDiscovery{
			Version: gv.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
			Resources: []apidiscoveryv2.APIResourceDiscovery{{
				Resource: resource, ResponseKind: &metav1.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: name},
				Scope: apidiscoveryv2.ScopeNamespace, Verbs: []string{"create", "patch"},
			}},
		}
	}
	group := func(name string, v apidiscoveryv2.APIVersionDiscovery) apidiscoveryv2.APIGroupDiscovery {
		return apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}, Versions: []apidiscoveryv2.APIVersionDiscovery{v}}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		list := &apidiscoveryv2.APIGroupDiscoveryList{}
		if r.URL.Path == "/api" {
			list.Items = append(list.Items, group("", kind(schema.GroupVersion{Version: "v1"}, "ConfigMap", "configmaps")))
		} else {
			routes := kind(schema.GroupVersion{Group: "route.openshift.io", Version: "v1"}, "Route", "routes")
			if away.Load() {
				routes.Freshness, routes.Resources = apidiscoveryv2.DiscoveryFreshnessStale, nil
			}
			list.Items = append(list.Items, group("route.openshift.io", routes))
		}
		w.Header().Set("Content-Type", discovery.AcceptV2)
		_ = json.NewEncoder(w).Encode(list)
	}))
	t.Cleanup(server.Close)
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return NewKinds(client, clock.RealClock{})
}

// TestListTellsWhatItCouldNotRead: kinds whose API server is away are listed as
// they were known before, and named where nobody knew them.
func TestListTellsWhatItCouldNotRead(t *testing.T) {
	var away atomic.Bool
	kinds := aggregator(t, &away)
	away.Store(true)
	list := func(want, unread []string) {
		t.Helper()
		got, err := kinds.List(t.Context())
		if err != nil || !slices.Equal(got.Kinds, want) || !slices.Equal(got.Unread, unread) {
			t.Errorf("kinds %q, unread %q, %v; want %q and %q", got.Kinds, got.Unread, err, want, unread)
		}
	}
	const configMaps, routes = "v1/ConfigMap N", "route.openshift.io/v1/Route N"
	list([]string{configMaps}, []string{"route.openshift.io/v1"})
	away.Store(false)
	list([]string{routes, configMaps}, nil)
	away.Store(true)
	list([]string{routes, configMaps}, []string{"route.openshift.io/v1"})
}
