package agent_test

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/flotilla-sh/flotilla/internal/agent/state"
)

// ahead moves the generations that the agent has stored ahead of the hub's.
func (w *world) ahead() {
	w.t.Helper()
	clients, err := kubernetes.NewForConfig(server.config)
	if err != nil {
		w.t.Fatal(err)
	}
	store := state.NewStore(clients.CoreV1().Secrets(w.state))
	records, err := store.Load(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range records {
		r.Generation += 10
		if err := store.Save(context.Background(), r); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestKilledAtAnyWrite ends the agent before or after each of its writes of an
// upgrade in turn. The next start finishes it, and what Git had meanwhile
// dropped again is not left behind.
func TestKilledAtAnyWrite(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; n <= 7; n++ {
			t.Run(fmt.Sprintf("write=%d,after=%v", n, after), func(t *testing.T) {
				w := newWorld(t)
				shop := w.ns("shop")
				w.deploy("web", []string{configMap(shop, "a", "1"), configMap(shop, "old", "1")})
				w.start()
				w.until("web", ready)
				w.stop()

				w.spoke.reset(n, after)
				w.deploy("web", []string{configMap(shop, "a", "2"), configMap(shop, "new", "1"), configMap(shop, "brief", "1")})
				w.start()
				w.eventually(func() error {
					if ready(w.status("web")) == nil {
						return nil
					}
					w.spoke.mu.Lock()
					defer w.spoke.mu.Unlock()
					if w.spoke.writes < n {
						return fmt.Errorf("%d writes", w.spoke.writes)
					}
					return nil
				})
				w.stop()

				w.spoke.reset(0, false)
				w.deploy("web", []string{configMap(shop, "a", "3"), configMap(shop, "new", "1")})
				w.start()
				w.until("web", ready)
				w.untilValue(shop, "a", "3")
				w.untilValue(shop, "new", "1")
				for _, name := range []string{"old", "brief"} {
					if _, err := w.object("v1/ConfigMap", shop, name); !apierrors.IsNotFound(err) {
						t.Errorf("%s is left behind: %v", name, err)
					}
				}
			})
		}
	}
}
