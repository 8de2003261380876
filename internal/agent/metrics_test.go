package agent_test

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// measured returns the agent's own metrics: name and label to value.
func (w *world) measured() map[string]float64 {
	w.t.Helper()
	families, err := w.metrics.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			out[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return out
}

// TestMetrics counts deployments by their state, applies and what was fetched.
func TestMetrics(t *testing.T) {
	w := newWorld(t)
	w.metrics = prometheus.NewRegistry()
	shop := w.ns("shop")
	w.deploy("good", []string{configMap(shop, "a", "1")})
	w.deploy("edited", []string{configMap(shop, "b", "1")})
	w.deploy("bad", []string{fmt.Sprintf("apiVersion: v1\nkind: Unicorn\nmetadata: {namespace: %s, name: x}\n", shop)})
	w.start()
	w.until("good", ready)
	w.until("edited", ready)
	w.until("bad", in(fleet.ErrApplied))
	w.edit(w.must("v1/ConfigMap", shop, "b"), "vi", `{"data":{"key":"2"}}`)
	w.until("edited", in(fleet.Modified))
	w.eventually(func() error {
		got := w.measured()
		for name, want := range map[string]float64{
			"flotilla_agent_deployments Ready": 1, "flotilla_agent_deployments Modified": 1,
			"flotilla_agent_deployments ErrApplied": 1, "flotilla_agent_deployments NotReady": 0,
		} {
			if n, known := got[name]; !known || n != want {
				return fmt.Errorf("%s is %v, want %v: %v", name, n, want, got)
			}
		}
		for _, name := range []string{
			"flotilla_agent_applies_total ok", "flotilla_agent_applies_total failed",
			"flotilla_agent_content_fetched_bytes_total", "flotilla_agent_content_fetched_payloads_total",
		} {
			if got[name] == 0 {
				return fmt.Errorf("nothing is counted in %s: %v", name, got)
			}
		}
		return nil
	})
}
