package apireq_test

import (
	"net/http/httptest"
	"testing"

	"github.com/flotilla-sh/flotilla/internal/apireq"
)

func TestOf(t *testing.T) {
	for request, want := range map[string]struct {
		text           string
		writes, cached bool
	}{
		"GET /api/v1/namespaces/shop/configmaps/a":                                        {text: "get configmaps shop/a"},
		"GET /api/v1/namespaces/shop/configmaps?resourceVersion=0":                        {text: "list configmaps shop", cached: true},
		"GET /api/v1/namespaces":                                                          {text: "list namespaces"},
		"GET /api/v1/namespaces/shop":                                                     {text: "get namespaces shop"},
		"PUT /api/v1/namespaces/shop/finalize":                                            {text: "update namespaces/finalize shop", writes: true},
		"POST /api/v1/namespaces/shop/secrets":                                            {text: "create secrets shop", writes: true},
		"GET /apis/fleet.cattle.io/v1alpha1/contents/c?resourceVersion=0":                 {text: "get contents c", cached: true},
		"GET /apis/fleet.cattle.io/v1alpha1/clusters?watch=true&resourceVersion=0":        {text: "watch clusters"},
		"PATCH /apis/fleet.cattle.io/v1alpha1/namespaces/n/bundledeployments/b/status":    {text: "patch bundledeployments/status n/b", writes: true},
		"PATCH /apis/apps/v1/namespaces/n/deployments/d?dryRun=All&fieldManager=flotilla": {text: "patch deployments n/d"},
		"DELETE /apis/apps/v1/namespaces/n/deployments/d":                                 {text: "delete deployments n/d", writes: true},
		"GET /apis/apps/v1": {text: "other "},
		"GET /api":          {text: "other "},
		"GET /version":      {text: "other "},
	} {
		t.Run(request, func(t *testing.T) {
			var method, target string
			for i, c := range request {
				if c == ' ' {
					method, target = request[:i], request[i+1:]
					break
				}
			}
			got := apireq.Of(httptest.NewRequest(method, target, nil))
			if got.String() != want.text || got.Writes() != want.writes || got.Cached() != want.cached {
				t.Errorf("got %q, writes %v, cached %v", got, got.Writes(), got.Cached())
			}
		})
	}
}
