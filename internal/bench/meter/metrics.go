package meter

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"

	"github.com/flotilla-sh/flotilla/internal/lab"
)

// EtcdUse is what an etcd says of itself.
type EtcdUse struct {
	// Puts are the keys that were written, LogBytes the bytes of its log.
	Puts, LogBytes float64
	// LiveBytes is the part of its database that is in use.
	LiveBytes float64
}

// minus is what happened since an earlier reading.
func (e EtcdUse) minus(o EtcdUse) EtcdUse {
	return EtcdUse{Puts: e.Puts - o.Puts, LogBytes: e.LogBytes - o.LogBytes, LiveBytes: e.LiveBytes - o.LiveBytes}
}

type families map[string]*dto.MetricFamily

func parse(text io.Reader) (families, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	return parser.TextToMetricFamilies(text)
}

// value is the value of a metric without labels.
func (f families) value(name string) (float64, error) {
	family := f[name]
	if family == nil || len(family.Metric) == 0 {
		return 0, fmt.Errorf("there is no metric %s", name)
	}
	m := family.Metric[0]
	return m.GetCounter().GetValue() + m.GetGauge().GetValue(), nil
}

// etcdMetrics reads the metrics of an etcd through its socket.
type etcdMetrics struct{ client *http.Client }

func newEtcdMetrics(cluster lab.ClusterStatus) etcdMetrics {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return cluster.DialEtcd(ctx) }
	return etcdMetrics{&http.Client{Transport: &http.Transport{DialContext: dial}, Timeout: 30 * time.Second}}
}

func (e etcdMetrics) read(ctx context.Context) (EtcdUse, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://etcd/metrics", nil)
	if err != nil {
		return EtcdUse{}, err
	}
	response, err := e.client.Do(request)
	if err != nil {
		return EtcdUse{}, fmt.Errorf("the metrics of etcd: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	found, err := parse(response.Body)
	if err != nil {
		return EtcdUse{}, fmt.Errorf("the metrics of etcd: %w", err)
	}
	var out EtcdUse
	for name, value := range map[string]*float64{
		"etcd_mvcc_put_total":                     &out.Puts,
		"etcd_disk_wal_write_bytes_total":         &out.LogBytes,
		"etcd_mvcc_db_total_size_in_use_in_bytes": &out.LiveBytes,
	} {
		if *value, err = found.value(name); err != nil {
			return EtcdUse{}, fmt.Errorf("the metrics of etcd: %w", err)
		}
	}
	return out, nil
}

// served is what the metrics of an API server say it has answered, by verb and
// resource; watches are left out, because they count at their end.
type served map[[2]string]float64

func readServed(ctx context.Context, server rest.Interface) (served, error) {
	text, err := server.Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("the metrics of the API server: %w", err)
	}
	found, err := parse(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("the metrics of the API server: %w", err)
	}
	out := served{}
	for _, m := range found["apiserver_request_total"].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.Label {
			labels[l.GetName()] = l.GetValue()
		}
		verb := verbs[labels["verb"]]
		if verb == "" || labels["resource"] == "" {
			continue
		}
		resource := labels["resource"]
		if labels["subresource"] != "" {
			resource += "/" + labels["subresource"]
		}
		out[[2]string{verb, resource}] += m.GetCounter().GetValue()
	}
	return out, nil
}

// verbs are those of the metrics, as the audit log calls them.
var verbs = map[string]string{
	"GET": "get", "LIST": "list", "POST": "create", "PUT": "update", "PATCH": "patch", "APPLY": "patch",
	"DELETE": "delete", "DELETECOLLECTION": "deletecollection",
}
