package hub_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/apireq"
	"github.com/flotilla-sh/flotilla/internal/faultproxy"
	"github.com/flotilla-sh/flotilla/internal/hub"
	"github.com/flotilla-sh/flotilla/internal/memapi"
	"github.com/flotilla-sh/flotilla/internal/render"
)

// TestEndsWhileTheAPIServerIsAway ends a hub that cannot fill its caches.
func TestEndsWhileTheAPIServerIsAway(t *testing.T) {
	// Its handlers wait by a clock that is not the bubble's.
	utilruntime.ErrorHandlers = nil
	synctest.Test(t, func(t *testing.T) {
		server := memapi.NewHub(nil)
		scheme, err := hub.Scheme()
		if err != nil {
			t.Fatal(err)
		}
		direct, err := client.New(server.Config(), client.Options{Scheme: scheme})
		if err != nil {
			t.Fatal(err)
		}
		if err := direct.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "hub"}}); err != nil {
			t.Fatal(err)
		}
		proxy := faultproxy.New("hub", nil)
		proxy.Use(func(q faultproxy.Request) faultproxy.Fault {
			if q.Verb == apireq.Watch || q.Verb == apireq.List && q.Resource != "deployments" {
				return faultproxy.Fault{Kind: faultproxy.Internal}
			}
			return faultproxy.Fault{}
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer time.AfterFunc(time.Minute, cancel).Stop()
		config := proxy.Connect(server.Config(), cancel)
		begin := time.Now()
		err = hub.Run(ctx, hub.Options{
			Config: config, Namespace: "hub", CacheDir: t.TempDir(), Identity: "hub", Renderer: render.New(), MetricsAddress: "0",
		})
		if after := time.Since(begin); err != nil || after < time.Minute || after > 2*time.Minute {
			t.Errorf("it ended after %s with %v", after, err)
		}
		time.Sleep(time.Hour) // lets what still runs end
	})
}
