package hubtest_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/flotilla-sh/flotilla/internal/lab/labtest"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// carried is the size of a payload that a carrier is measured with.
const carried = 675_000

// BenchmarkCarrier measures the API server's CPU for one agent that fetches a
// payload, by what carries it; see decision 5.
func BenchmarkCarrier(b *testing.B) {
	labtest.Skip(b)
	data := make([]byte, carried)
	r := rand.NewChaCha8([32]byte{})
	_, _ = r.Read(data)
	name := fmt.Sprintf("carrier-%d", worlds.Add(1))
	must(b, server.client.Create(b.Context(), &fleet.Content{ObjectMeta: metav1.ObjectMeta{Name: name}, Content: data}))
	must(b, server.client.Create(b.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Immutable:  ptr.To(true), BinaryData: map[string][]byte{"content": data},
	}))
	const asJSON, asProtobuf = "application/json", "application/vnd.kubernetes.protobuf"
	resource, configMap := "/apis/fleet.cattle.io/v1alpha1/contents/"+name, "/api/v1/namespaces/default/configmaps/"+name
	for _, c := range []struct {
		name, path, accept, version string
		compress                    bool
		protocols                   []string
	}{
		{"custom resource, newest, gzip", resource, asJSON, "", true, nil},
		{"custom resource, cached", resource, asJSON, "0", false, nil},
		{"ConfigMap, cached, JSON", configMap, asJSON, "0", false, nil},
		{"ConfigMap, newest, protobuf", configMap, asProtobuf, "", false, nil},
		{"ConfigMap, cached, protobuf, gzip", configMap, asProtobuf, "0", true, nil},
		{"ConfigMap, cached, protobuf", configMap, asProtobuf, "0", false, nil},
		{"ConfigMap, cached, protobuf, HTTP 1", configMap, asProtobuf, "0", false, []string{"http/1.1"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			config := rest.CopyConfig(server.config)
			config.DisableCompression = !c.compress
			config.NextProtos = c.protocols
			client, err := rest.UnversionedRESTClientFor(versioned(config))
			must(b, err)
			before, bytes := cpuOf(b, server.apiserver), 0
			for b.Loop() {
				raw, err := client.Get().AbsPath(c.path).Param("resourceVersion", c.version).SetHeader("Accept", c.accept).Do(b.Context()).Raw()
				must(b, err)
				bytes = len(raw)
			}
			spent := cpuOf(b, server.apiserver) - before
			b.ReportMetric(float64(spent.Microseconds())/1000/float64(b.N), "server-cpu-ms/op")
			b.ReportMetric(float64(bytes), "bytes")
		})
	}
}

func versioned(config *rest.Config) *rest.Config {
	config.GroupVersion, config.APIPath = &corev1.SchemeGroupVersion, "/api"
	config.NegotiatedSerializer = clientgoscheme.Codecs
	return config
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// cpuOf is the CPU time that a process has used.
func cpuOf(b *testing.B, pid int) time.Duration {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skip(err)
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(field, 10, 64)
		must(b, err)
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / 100)
}
