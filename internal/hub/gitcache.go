package hub

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/flotilla-sh/flotilla/internal/source/git"
)

// openGitCache opens the clones, with a bound and metrics.
func openGitCache(dir string, size int64) (*git.Cache, error) {
	clones, err := git.NewCache(dir)
	if err != nil {
		return nil, err
	}
	if err := clones.Bound(size); err != nil {
		return nil, err
	}
	// The last hub of a process is the one to look at; only tests have several.
	collector := gitCache{clones}
	metrics.Registry.Unregister(collector)
	return clones, metrics.Registry.Register(collector)
}

// gitCache shows what the clones need on disk.
type gitCache struct{ clones *git.Cache }

func (gitCache) bytes() *prometheus.Desc {
	return prometheus.NewDesc("flotilla_hub_git_cache_bytes", "Bytes of clones on disk.", nil, nil)
}

func (gitCache) repositories() *prometheus.Desc {
	return prometheus.NewDesc("flotilla_hub_git_cache_repositories", "Clones on disk.", nil, nil)
}

func (gitCache) evicted() *prometheus.Desc {
	return prometheus.NewDesc("flotilla_hub_git_cache_evicted_total", "Clones that were removed to stay within the bound.", nil, nil)
}

// Describe implements prometheus.Collector.
func (g gitCache) Describe(out chan<- *prometheus.Desc) {
	out <- g.bytes()
	out <- g.repositories()
	out <- g.evicted()
}

// Collect implements prometheus.Collector.
func (g gitCache) Collect(out chan<- prometheus.Metric) {
	u := g.clones.Usage()
	out <- prometheus.MustNewConstMetric(g.bytes(), prometheus.GaugeValue, float64(u.Bytes))
	out <- prometheus.MustNewConstMetric(g.repositories(), prometheus.GaugeValue, float64(u.Repositories))
	out <- prometheus.MustNewConstMetric(g.evicted(), prometheus.CounterValue, float64(u.Evicted))
}
