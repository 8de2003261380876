package agent_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/agent/state"
	"github.com/flotilla-sh/flotilla/internal/apireq"
	"github.com/flotilla-sh/flotilla/internal/faultproxy"
)

// record is the Secret in which the agent keeps the state of a bundle.
func (w *world) record(bundle string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	name := state.SecretName((&state.Record{Bundle: bundle, BundleNamespace: w.namespace}).Owner())
	return secret, server.client.Get(w.ctx, client.ObjectKey{Namespace: w.state, Name: name}, secret)
}

func (w *world) mustRecord(bundle string) *corev1.Secret {
	w.t.Helper()
	secret, err := w.record(bundle)
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

// TestRecordIsDeleted deletes the state of a deployment behind the agent's back:
// it is upgraded and removed all the same.
func TestRecordIsDeleted(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "a", "1"), configMap(shop, "b", "1")})
	w.start()
	w.until("web", ready)
	if err := server.client.Delete(w.ctx, w.mustRecord("web")); err != nil {
		t.Fatal(err)
	}
	w.deploy("web", []string{configMap(shop, "a", "2")})
	w.until("web", ready)
	w.mustRecord("web")
	if _, err := w.object("v1/ConfigMap", shop, "b"); !apierrors.IsNotFound(err) {
		t.Errorf("what left the bundle is still there: %v", err)
	}
	w.deploy("web", nil, marked)
	w.until("web", gone)
}

// TestRecordIsDamaged starts an agent that cannot read the state of one of its
// deployments: the others are served, and that one is taken from the hub again.
func TestRecordIsDamaged(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "a", "1")})
	w.deploy("db", []string{configMap(shop, "b", "1")})
	w.start()
	w.until("web", ready)
	w.until("db", ready)
	w.stop()
	damaged := w.mustRecord("web")
	damaged.Data["record"] = []byte("{")
	if err := server.client.Update(w.ctx, damaged); err != nil {
		t.Fatal(err)
	}
	w.deploy("web", []string{configMap(shop, "a", "2")})
	w.deploy("db", []string{configMap(shop, "b", "2")})
	w.start()
	w.until("db", ready)
	w.until("web", ready)
	w.untilValue(shop, "a", "2")
	w.deploy("web", nil, marked)
	w.until("web", gone)
}

// TestReportsWhatCannotBeStored refuses to store that a removal has begun to
// wait: people are told of it all the same.
func TestReportsWhatCannotBeStored(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	w.deploy("web", []string{configMap(shop, "a", "1"), configMap(shop, "b", "1")})
	w.start()
	w.until("web", ready)
	w.edit(w.must("v1/ConfigMap", shop, "a"), "someone", `{"metadata":{"finalizers":["example.org/drain"]}}`)
	w.spoke.Use(func(r faultproxy.Request) faultproxy.Fault {
		if r.Resource != "secrets" || !r.Writes() {
			return faultproxy.Fault{}
		}
		if a, err := w.object("v1/ConfigMap", shop, "a"); err == nil && a.GetDeletionTimestamp() != nil {
			return faultproxy.Fault{Kind: faultproxy.Internal}
		}
		return faultproxy.Fault{}
	})
	w.deploy("web", nil, marked)
	w.until("web", removing("ConfigMap "+shop+"/a: it is being deleted and waits for its finalizers example.org/drain"))
	w.eventually(func() error {
		if len(w.spoke.Seen(func(r apireq.Request) bool { return r.Resource == "secrets" && r.Writes() })) < 3 {
			return errors.New("it is not tried again")
		}
		return nil
	})
	w.spoke.Use(nil)
	w.edit(w.must("v1/ConfigMap", shop, "a"), "someone", `{"metadata":{"finalizers":null}}`)
	w.until("web", gone)
}
