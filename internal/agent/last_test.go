package agent_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/agent"
	"github.com/flotilla-sh/flotilla/internal/agent/lease"
	"github.com/flotilla-sh/flotilla/internal/apireq"
	"github.com/flotilla-sh/flotilla/internal/faultproxy"
	"github.com/flotilla-sh/flotilla/internal/render"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// holder is who has the Lease of the cluster's agent.
func (w *world) holder() string {
	w.t.Helper()
	obj, err := w.object("coordination.k8s.io/v1/Lease", w.state, lease.Name)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	spec, _ := obj.Object["spec"].(map[string]any)
	holder, _ := spec["holderIdentity"].(string)
	return holder
}

// TestTwoAgentsForOneCluster starts a second agent beside the first: it does
// nothing until the first has ended, and is not kept waiting then.
func TestTwoAgentsForOneCluster(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "a", "1")})
	w.start()
	w.until("web", ready)
	second, secondHub := faultproxy.New("second", t.Logf), faultproxy.New("second's hub", t.Logf)
	ctx, stop := context.WithCancel(logr.NewContext(w.ctx, logr.Discard()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = agent.Run(ctx, agent.Options{
			Spoke: second.Connect(server.config, stop), Hub: secondHub.Connect(server.config, stop),
			HubNamespace: w.namespace, Namespace: w.state, Identity: "second",
			Heartbeat: time.Minute, Renderer: render.New(), Clock: clock.RealClock{},
		})
	}()
	w.eventually(func() error {
		if len(second.Seen(all)) == 0 {
			return fmt.Errorf("it has not asked yet")
		}
		return nil
	})
	w.deploy("web", []string{configMap(shop, "a", "2")})
	w.until("web", ready)
	got := append(second.Seen(func(r apireq.Request) bool { return r.Resource != "leases" }), secondHub.Seen(all)...)
	if len(got) > 0 || w.holder() != "test" {
		t.Errorf("beside %s the second agent asked for %v", w.holder(), got)
	}
	w.stop()
	w.deploy("web", []string{configMap(shop, "a", "3")})
	w.until("web", ready)
	w.untilValue(shop, "a", "3")
	stop()
	<-done
	if got := w.holder(); got != "" {
		t.Errorf("%s holds the Lease although nobody runs", got)
	}
}

// TestLooksAtTheHubNowAndThen works without a watch.
func TestLooksAtTheHubNowAndThen(t *testing.T) {
	w := newWorld(t)
	w.poll = 300 * time.Millisecond
	shop := w.ns("shop")
	w.start()
	w.deploy("web", []string{configMap(shop, "a", "1")})
	w.until("web", ready)
	w.hub.Cut(true)
	w.deploy("web", []string{configMap(shop, "a", "2")})
	w.edit(w.must("v1/ConfigMap", shop, "a"), "vi", `{"data":{"key":"by hand"}}`)
	w.said("Warning", "Modified", shop+"/a modified")
	w.hub.Cut(false)
	w.until("web", ready)
	w.untilValue(shop, "a", "2")
	w.deploy("web", nil, marked)
	w.until("web", gone)
	if got := w.hub.Seen(func(r apireq.Request) bool { return r.Verb == apireq.Watch }); len(got) > 0 {
		t.Errorf("watches: %v", got)
	}
}

// TestTellsTheTimeOfWhatHappened reports after the hub was away when something
// happened, not when it was reported.
func TestTellsTheTimeOfWhatHappened(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "a", "1")})
	w.start()
	before := w.until("web", ready)
	w.stop()
	w.hub.Cut(true)
	w.start()
	w.edit(w.must("v1/ConfigMap", shop, "a"), "vi", `{"data":{"key":"2"}}`)
	w.said("Warning", "Modified", shop+"/a modified")
	happened := time.Now()
	w.eventually(func() error {
		if time.Since(happened) < 6*time.Second {
			return fmt.Errorf("the hub is away")
		}
		return nil
	})
	w.hub.Cut(false)
	bd := w.until("web", in(fleet.Modified))
	got := fleet.FindCondition(bd.Status.Conditions, fleet.ConditionReady)
	at, err := time.Parse(time.RFC3339, got.LastTransitionTime)
	if err != nil || got.Status != metav1.ConditionFalse || at.After(happened.Add(3*time.Second)) {
		t.Errorf("it happened at %s: %+v %v", happened, got, err)
	}
	old, now := fleet.FindCondition(before.Status.Conditions, fleet.ConditionInstalled), fleet.FindCondition(bd.Status.Conditions, fleet.ConditionInstalled)
	if old.LastTransitionTime != now.LastTransitionTime {
		t.Errorf("what did not change moved: %+v, %+v", old, now)
	}
}

// TestFullDisk lets every write to the cluster fail, as its etcd does once its
// disk or quota is full, and then none: nothing is lost, and nothing is left.
func TestFullDisk(t *testing.T) {
	full := func(r faultproxy.Request) faultproxy.Fault {
		if r.Writes() {
			return faultproxy.Fault{Kind: faultproxy.Internal}
		}
		return faultproxy.Fault{}
	}
	for name, test := range map[string]struct {
		begin   func(w *world)
		arrived func(*fleet.BundleDeployment) error
		left    []string
	}{
		"upgrade": {func(w *world) { w.deploy("web", []string{configMap(w.ns("shop"), "b", "1")}) }, ready, []string{"b"}},
		"removal": {func(w *world) { w.deploy("web", nil, marked) }, gone, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.deploy("web", []string{configMap(w.ns("shop"), "a", "1")})
			w.start()
			w.until("web", ready)
			w.spoke.Reset()
			w.spoke.Use(full)
			test.begin(w)
			w.eventually(func() error {
				if n := len(w.spoke.Seen(writes)); n < 3 {
					return fmt.Errorf("%d writes were tried", n)
				}
				return nil
			})
			w.must("v1/ConfigMap", w.ns("shop"), "a")
			w.spoke.Use(nil)
			w.until("web", test.arrived)
			list := &corev1.ConfigMapList{}
			if err := server.client.List(w.ctx, list, client.InNamespace(w.ns("shop"))); err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, cm := range list.Items {
				if cm.Name != "kube-root-ca.crt" {
					left = append(left, cm.Name)
				}
			}
			if fmt.Sprint(left) != fmt.Sprint(test.left) {
				t.Errorf("left: %v, want %v", left, test.left)
			}
		})
	}
}
