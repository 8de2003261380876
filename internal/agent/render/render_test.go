package render

import (
	"testing"

	"github.com/flotilla-sh/flotilla/internal/render"
)

// TestNothingIsRenderedInDoubt: what cannot be read at the moment is not missing.
func TestNothingIsRenderedInDoubt(t *testing.T) {
	req := &render.Request{Capabilities: render.Capabilities{APIs: render.ParseAPIs("v1/Pod N\napps/v1/Deployment N")}}
	for name, tt := range map[string]struct {
		asked, unread []string
		doubt         bool
	}{
		"all can be read":              {asked: []string{"route.openshift.io/v1"}},
		"what it asks for is away":     {asked: []string{"v1/Pod", "route.openshift.io/v1/Route"}, unread: []string{"route.openshift.io/v1"}, doubt: true},
		"the group and version is":     {asked: []string{"route.openshift.io/v1"}, unread: []string{"route.openshift.io/v1"}, doubt: true},
		"another version is away":      {asked: []string{"route.openshift.io/v1"}, unread: []string{"route.openshift.io/v1beta1"}},
		"it was known before":          {asked: []string{"apps/v1/Deployment"}, unread: []string{"apps/v1"}},
		"it asks for something else":   {asked: []string{"kubeVersion", "kubeVersion >=1.30", "scope apps/Deployment"}, unread: []string{"route.openshift.io/v1"}},
		"a constraint that is not met": {asked: []string{"kubeVersion >=9"}, unread: []string{"kubeVersion"}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := doubtful(tt.asked, tt.unread, req); (err != nil) != tt.doubt {
				t.Errorf("got %v", err)
			}
		})
	}
}
