package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/agent/state"
	"github.com/flotilla-sh/flotilla/internal/apireq"
	"github.com/flotilla-sh/flotilla/internal/faultproxy"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
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

// path is one way of a deployment through its life.
type path struct {
	// before brings the deployment to where the path begins, begin sends it on
	// its way, and arrived is satisfied at the end.
	before, begin func(w *world)
	arrived       func(*fleet.BundleDeployment) error
	// spoke and hub are the numbers of writes that it takes at most.
	spoke, hub int
	// after changes once more what is wanted, and left are the objects that
	// there are in the end, with their values.
	after func(w *world)
	left  map[string]string
	// check looks at what else there is in the end.
	check func(w *world)
}

// paths are the ways that an agent is killed on.
func paths() map[string]path {
	web := func(objects ...string) func(w *world) {
		return func(w *world) {
			var texts []string
			for i := 0; i < len(objects); i += 2 {
				texts = append(texts, configMap(w.ns("shop"), objects[i], objects[i+1]))
			}
			w.deploy("web", texts)
		}
	}
	mark := func(w *world) {
		w.deploy("web", nil, func(bd *fleet.BundleDeployment) { bd.Spec.Removal = &fleet.Removal{Reason: "the bundle is gone"} })
	}
	return map[string]path{
		"install": {
			begin: web("a", "1", "b", "1"), arrived: ready, spoke: 5, hub: 3,
			left: map[string]string{"a": "1", "b": "1"},
		},
		"upgrade": {
			before: web("a", "1", "old", "1"), begin: web("a", "2", "new", "1", "brief", "1"), arrived: ready, spoke: 7, hub: 2,
			// What Git has dropped again meanwhile is not left behind.
			after: web("a", "3", "new", "1"), left: map[string]string{"a": "3", "new": "1"},
		},
		"undressing": {
			before: func(w *world) {
				w.deploy("web", []string{configMap(w.ns("shop"), "a", "1")}, dressing(w.ns("shop"), "team", "web"))
			},
			begin: func(w *world) {
				w.deploy("web", []string{configMap(w.ns("shop"), "a", "1")}, dressing(w.ns("shop"), "stage", "prod"))
			},
			arrived: ready, spoke: 3, hub: 1,
			after: func(w *world) {
				w.deploy("web", []string{configMap(w.ns("shop"), "a", "1")}, dressing(w.ns("shop")))
			},
			left: map[string]string{"a": "1"}, check: func(w *world) { w.wears(w.ns("shop"), nil) },
		},
		"removal": {
			before: web("a", "1", "b", "1"), begin: mark, arrived: gone, spoke: 4, hub: 2,
		},
	}
}

// gone is satisfied once a deployment is removed.
func gone(bd *fleet.BundleDeployment) error {
	if bd.Status.RemovalState == nil || !bd.Status.RemovalState.Done {
		return fmt.Errorf("removal: %+v", bd.Status.RemovalState)
	}
	return nil
}

// TestKilledAtAnyWrite ends the agent before or after each of its writes on
// each path in turn, to its own cluster and to the hub. The next start finishes
// what was begun, and writes no more afterwards.
func TestKilledAtAnyWrite(t *testing.T) {
	for name, p := range paths() {
		for side, writes := range map[string]int{"spoke": p.spoke, "hub": p.hub} {
			for n := 1; n <= writes; n++ {
				for _, kind := range []faultproxy.Kind{faultproxy.KillBefore, faultproxy.KillAfter} {
					t.Run(fmt.Sprintf("%s,%s,%s %d", name, side, kind, n), func(t *testing.T) { p.killed(t, side, n, kind) })
				}
			}
		}
	}
}

// killed goes the path, and is killed on it.
func (p path) killed(t *testing.T, side string, n int, kind faultproxy.Kind) {
	w := newWorld(t)
	if p.before != nil {
		p.before(w)
		w.start()
		w.until("web", ready)
		w.stop()
	}
	proxy := w.spoke
	if side == "hub" {
		proxy = w.hub
	}
	proxy.Use(faultproxy.FaultAt(n, kind, func(r apireq.Request) bool { return writes(r) && !reported(r) }))
	p.begin(w)
	w.start()
	w.eventually(func() error {
		select {
		case <-w.ended:
			return nil
		default:
			return p.arrived(w.status("web"))
		}
	})
	w.stop()

	proxy.Use(nil)
	if p.after != nil {
		p.after(w)
	}
	w.start()
	w.until("web", p.arrived)
	for _, name := range []string{"a", "b", "new", "old", "brief"} {
		if value, wanted := p.left[name]; wanted {
			w.untilValue(w.ns("shop"), name, value)
		} else if _, err := w.object("v1/ConfigMap", w.ns("shop"), name); !apierrors.IsNotFound(err) {
			t.Errorf("%s is left behind: %v", name, err)
		}
	}
	if p.check != nil {
		p.check(w)
	}
}

// TestRemovedBeforeItCame marks a deployment that the cluster never had.
func TestRemovedBeforeItCame(t *testing.T) {
	w := newWorld(t)
	w.deploy("web", []string{configMap(w.ns("shop"), "a", "1")}, func(bd *fleet.BundleDeployment) { bd.Spec.Removal = &fleet.Removal{Reason: "the bundle is gone"} })
	w.start()
	w.until("web", gone)
	w.stop()
	before := w.status("web").ResourceVersion
	w.hub.Reset()
	w.start()
	w.never("web", func(bd *fleet.BundleDeployment) bool { return bd.ResourceVersion != before })
}

// TestDamagedContentIsNeverApplied damages what the hub stores. The agent says
// so, applies nothing, and goes on by itself once it is mended.
func TestDamagedContentIsNeverApplied(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "a", "1")})
	root := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: fleet.ContentNamespace, Name: w.status("web").Spec.Content.Name}
	if err := server.client.Get(w.ctx, key, root); err != nil {
		t.Fatal(err)
	}
	replace := func(data []byte) {
		t.Helper()
		if err := server.client.Delete(w.ctx, root); err != nil {
			t.Fatal(err)
		}
		bad := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: root.Namespace, Name: root.Name}}
		bad.BinaryData = map[string][]byte{"content": data}
		w.create(bad)
	}
	good := root.BinaryData["content"]
	w.deploy("other", []string{configMap(shop, "b", "1")})
	if err := server.client.Get(w.ctx, client.ObjectKey{Namespace: fleet.ContentNamespace, Name: w.status("other").Spec.Content.Name}, root); err != nil {
		t.Fatal(err)
	}
	other := root.BinaryData["content"]
	root.Name = key.Name
	for _, bad := range []struct {
		data []byte
		says string
	}{{other, "is not what was asked for"}, {good[:len(good)/2], "is damaged"}} {
		replace(bad.data)
		w.start()
		w.until("web", func(bd *fleet.BundleDeployment) error {
			if c := fleet.FindCondition(bd.Status.Conditions, fleet.ConditionDeployed); c == nil || !strings.Contains(c.Message, bad.says) {
				return fmt.Errorf("conditions: %+v", bd.Status.Conditions)
			}
			return nil
		})
		w.stop()
		if _, err := w.object("v1/ConfigMap", shop, "a"); !apierrors.IsNotFound(err) {
			t.Fatalf("something was applied: %v", err)
		}
	}
	w.start()
	replace(good)
	bd := w.until("web", ready)
	if f := bd.Status.Fetched; f == nil || f.Bytes == 0 || f.Payloads != 1 || f.Reused != 0 {
		t.Errorf("fetched: %+v", f)
	}
}
