package agent_test

import (
	"fmt"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// said waits for an event on the agent's own cluster.
func (w *world) said(kind, reason, text string) {
	w.t.Helper()
	w.eventually(func() error {
		list := &eventsv1.EventList{}
		if err := server.client.List(w.ctx, list, client.InNamespace(w.state)); err != nil {
			return err
		}
		var all []string
		for _, e := range list.Items {
			if e.Type == kind && e.Reason == reason && strings.Contains(e.Note, text) {
				return nil
			}
			all = append(all, e.Type+" "+e.Reason+": "+e.Note)
		}
		return fmt.Errorf("no event %s %s %q in %q", kind, reason, text, all)
	})
}

func TestTheClusterIsToldWithoutTheHub(t *testing.T) {
	w := newWorld(t)
	shop := w.ns("shop")
	bundle := "bundle " + w.namespace + "/web: "
	w.deploy("web", []string{configMap(shop, "a", "1")})
	w.start()
	w.until("web", ready)
	w.said("Normal", "Deployed", bundle+"1 object is deployed")

	w.stop()
	w.hub.Cut(true)
	w.start()
	w.edit(w.must("v1/ConfigMap", shop, "a"), "vi", `{"data":{"key":"2"}}`)
	w.said("Warning", "Modified", "configmap.v1 "+shop+"/a modified")
	w.edit(w.must("v1/ConfigMap", shop, "a"), "vi", `{"data":{"key":"1"}}`)
	w.said("Normal", "AsApplied", bundle)
}
