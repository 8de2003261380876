package agent_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

var everyHarm = flag.Bool("harms", false, "do every harm to every write, not one of them in turn")

// harms are what is done to a write: the agent ends before or after it, or it
// is refused, or its answer is lost.
var harms = []faultproxy.Kind{faultproxy.KillBefore, faultproxy.Internal, faultproxy.KillAfter, faultproxy.Lose}

// TestHarmAtAnyWrite lets each of the agent's writes on each path go wrong in
// turn, to its own cluster and to the hub. What was begun is finished, by the
// agent itself or by its next start, and nothing is written afterwards.
func TestHarmAtAnyWrite(t *testing.T) {
	for name, p := range paths {
		for i, side := range []string{"spoke", "hub"} {
			if i > 0 && p.tellsNothingNew && !*everyHarm {
				continue
			}
			t.Run(name+","+side, func(t *testing.T) {
				beside(t)
				met := true
				for n := 1; met && !t.Failed(); n++ {
					kinds := harms
					if !*everyHarm {
						kinds = harms[(n+i+len(name))%len(harms):][:1]
					}
					met = false
					for _, kind := range kinds {
						t.Run(fmt.Sprintf("%s %d", kind, n), func(t *testing.T) { met = p.harmed(t, side, n, kind) || met })
					}
				}
			})
		}
	}
}

// harmed goes the path, and tells whether there was an nth write.
func (p path) harmed(t *testing.T, side string, n int, kind faultproxy.Kind) (met bool) {
	w := makeWorld(t)
	w.settle = p.settle
	seen := newAudit(w, w.ns("shop"))
	if p.before != nil {
		p.before(w)
		w.start()
		for name := range w.firsts {
			w.until(name, ready)
		}
		w.stop()
	}
	proxy := w.spoke
	if side == "hub" {
		proxy = w.hub
	}
	decide := faultproxy.FaultAt(n, kind, restless)
	var was atomic.Bool
	proxy.Use(func(q faultproxy.Request) faultproxy.Fault {
		f := decide(q)
		if f.Kind != faultproxy.None {
			was.Store(true)
		}
		return f
	})
	p.begin(w)
	w.start()
	died := false
	w.eventually(func() error {
		select {
		case <-w.ended:
			died = true
			return nil
		default:
			return p.there(w)
		}
	})
	met = was.Load()

	proxy.Use(nil)
	if died || p.after != nil {
		w.stop()
		if p.after != nil {
			p.after(w)
		}
		w.start()
		w.eventually(func() error { return p.there(w) })
	}
	w.quiet(false)
	if !died || *everyHarm {
		w.stop()
		w.start()
		w.quiet(true)
	}
	w.stop()
	p.judge(w, seen)
	return met
}

// there tells whether all have arrived.
func (p path) there(w *world) error {
	for name, arrived := range p.arrived {
		if err := arrived(w.status(name)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// judge looks at what there is in the end, and at what has happened.
func (p path) judge(w *world, seen *audit) {
	w.t.Helper()
	if err := p.there(w); err != nil {
		w.t.Errorf("it was there, and is so no more: %v", err)
	}
	list := &corev1.ConfigMapList{}
	if err := server.client.List(w.ctx, list, client.InNamespace(w.ns("shop"))); err != nil {
		w.t.Fatal(err)
	}
	left := map[string]string{}
	for _, cm := range list.Items {
		if cm.Name != "kube-root-ca.crt" {
			left[cm.Name] = cm.Data["key"]
		}
	}
	if !maps.Equal(left, p.left) {
		w.t.Errorf("left are %v, want %v", left, p.left)
	}
	j := seen.judge(p.rules)
	if p.check != nil {
		p.check(w, j)
	}
}

// restless matches writes that nothing calls for once all is well.
func restless(r apireq.Request) bool {
	return writes(r) && !reported(r) && r.Resource != "events"
}

// atStart matches what each start writes, which changes nothing.
func atStart(r apireq.Request) bool {
	return r.Verb == apireq.Create && r.Resource == "namespaces" || r.Name == fleet.CapabilitiesName
}

// calm is how long nothing may be written once all is well.
const calm = 200 * time.Millisecond

// quiet waits until the agent writes no more; where it has just started, it
// must not have written at all.
func (w *world) quiet(started bool) {
	w.t.Helper()
	if started {
		w.eventually(func() error {
			if len(w.hub.Seen(reported)) == 0 {
				return errors.New("the agent has not reported yet")
			}
			return nil
		})
	}
	var written []apireq.Request
	for range 20 {
		if !started {
			w.spoke.Reset()
			w.hub.Reset()
		}
		time.Sleep(calm)
		written = slices.DeleteFunc(append(w.spoke.Seen(restless), w.hub.Seen(restless)...), atStart)
		if len(written) == 0 || started {
			break
		}
	}
	if len(written) > 0 {
		w.t.Errorf("all is well, and yet is written: %v", written)
	}
	w.spoke.Reset()
	w.hub.Reset()
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
