package deploy

import (
	"github.com/prometheus/client_golang/prometheus"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// metrics count what the controller does.
type metrics struct {
	applies *prometheus.CounterVec
	// fetchedBytes and fetchedPayloads count content.
	fetchedBytes, fetchedPayloads prometheus.Counter
}

var deploymentsDesc = prometheus.NewDesc("flotilla_agent_deployments",
	"Deployments of this cluster by state.", []string{"state"}, nil)

func newMetrics() *metrics {
	return &metrics{
		applies: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "flotilla_agent_applies_total",
			Help: "Applies and corrections of deployments by result: ok, or failed where an object is not as wanted.",
		}, []string{"result"}),
		fetchedBytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "flotilla_agent_content_fetched_bytes_total",
			Help: "Bytes of content that were fetched, compressed.",
		}),
		fetchedPayloads: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "flotilla_agent_content_fetched_payloads_total",
			Help: "Payloads of content that were fetched and verified.",
		}),
	}
}

// applied counts one apply.
func (m *metrics) applied(ok bool) {
	result := "ok"
	if !ok {
		result = "failed"
	}
	m.applies.WithLabelValues(result).Inc()
}

// Describe implements prometheus.Collector.
func (c *Controller) Describe(out chan<- *prometheus.Desc) {
	out <- deploymentsDesc
	c.metrics.applies.Describe(out)
	c.metrics.fetchedBytes.Describe(out)
	c.metrics.fetchedPayloads.Describe(out)
}

// Collect implements prometheus.Collector.
func (c *Controller) Collect(out chan<- prometheus.Metric) {
	for state, n := range c.states() {
		out <- prometheus.MustNewConstMetric(deploymentsDesc, prometheus.GaugeValue, float64(n), string(state))
	}
	c.metrics.applies.Collect(out)
	c.metrics.fetchedBytes.Collect(out)
	c.metrics.fetchedPayloads.Collect(out)
}

// states counts the deployments by state; every state of a deployment is there.
func (c *Controller) states() map[fleet.BundleState]int {
	out := map[fleet.BundleState]int{}
	for _, s := range []fleet.BundleState{fleet.Ready, fleet.NotReady, fleet.Modified, fleet.OutOfSync, fleet.WaitApplied, fleet.ErrApplied} {
		out[s] = 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range c.jobs {
		if j.told.state != "" && !j.told.removed {
			out[j.told.state]++
		}
	}
	return out
}
