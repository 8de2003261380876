package stage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/flotilla-sh/flotilla/internal/bench/meter"
)

const (
	rawNamespace = "flotilla-bench"
	// rawWarmUp pairs are made before those that count.
	rawWarmUp = 300
	// rawPairs are measured.
	rawPairs = 1000
	// rawParallel is how many requests are under way.
	rawParallel = 32
	rawPath     = "/apis/fleet.cattle.io/v1alpha1/namespaces/" + rawNamespace + "/bundledeployments"
)

// Raw is what this API server can do: one lean object created and its status
// patched for each pair of bundle and cluster, by a client that does nothing
// else, with nobody watching. It is the floor.
type Raw struct {
	// CreateRate and PatchRate are per second.
	CreateRate, PatchRate float64
	// CPU is that of API server and etcd for one pair.
	CPU time.Duration
	// Puts and LogBytes are of one pair.
	Puts, LogBytes, LiveBytes float64
}

// Pairs is how long n pairs take at least.
func (r Raw) Pairs(n float64) time.Duration {
	return time.Duration(n * (1/r.CreateRate + 1/r.PatchRate) * float64(time.Second))
}

// Updates is how long n changes of a spec and of a status take at least.
func (r Raw) Updates(n float64) time.Duration {
	return time.Duration(n * 2 / r.PatchRate * float64(time.Second))
}

// MeasureRaw measures the API server with the hub stopped, and leaves nothing
// behind but a warm server.
func (s *Stage) MeasureRaw(ctx context.Context) (Raw, error) {
	ctx, cancel := within(ctx, "measure the API server")
	defer cancel()
	if err := s.StopHub(); err != nil {
		return Raw{}, err
	}
	raw, err := s.measureRaw(ctx)
	if err != nil {
		return raw, fmt.Errorf("measure the API server: %w", err)
	}
	s.options.Log("raw API server: %.0f creates/s, %.0f status patches/s, %s CPU a pair", raw.CreateRate, raw.PatchRate, raw.CPU)
	return raw, s.StartHub(ctx)
}

func (s *Stage) measureRaw(ctx context.Context) (Raw, error) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: rawNamespace}}
	if err := s.Hub.Create(ctx, ns); err != nil {
		return Raw{}, err
	}
	server := s.Kube.RESTClient()
	if _, _, err := rawRound(ctx, server, "warm", rawWarmUp); err != nil {
		return Raw{}, err
	}
	before, err := s.Meter.Begin(ctx)
	if err != nil {
		return Raw{}, err
	}
	created, patched, err := rawRound(ctx, server, "raw", rawPairs)
	if err != nil {
		return Raw{}, err
	}
	use, err := s.Meter.End(ctx, before)
	if err != nil {
		return Raw{}, err
	}
	const n = rawPairs
	raw := Raw{
		CreateRate: n / created.Seconds(), PatchRate: n / patched.Seconds(),
		CPU:  (use.CPU[meter.APIServer] + use.CPU[meter.Etcd]) / n,
		Puts: use.Etcd.Puts / n, LogBytes: use.Etcd.LogBytes / n, LiveBytes: use.Etcd.LiveBytes / n,
	}
	return raw, server.Delete().AbsPath(rawPath).Do(ctx).Error()
}

// RawBeats renews n Leases that nobody watches, once each within a time, as
// leanly as can be: what so many heartbeats cost at least, at their own pace. A
// request that comes to a machine at rest costs more than one of many.
func (s *Stage) RawBeats(ctx context.Context, n int, within time.Duration) (meter.Use, error) {
	server := s.Kube.CoordinationV1().RESTClient()
	leases := func(request *rest.Request) *rest.Request {
		return request.Namespace(metav1.NamespaceDefault).Resource("leases").SetHeader("Accept", rawAnswer)
	}
	err := each(n, func(i int) error {
		return leases(server.Post()).Body([]byte(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"`+rawName("beat", i)+`"}}`)).
			SetHeader("Content-Type", "application/json").Do(ctx).Error()
	})
	if err != nil {
		return meter.Use{}, fmt.Errorf("make Leases: %w", err)
	}
	return s.Paced(ctx, within, n, func(i int) error {
		now := time.Now().UTC().Format(metav1.RFC3339Micro)
		return leases(server.Patch(types.MergePatchType)).Name(rawName("beat", i)).
			Body([]byte(`{"metadata":{"managedFields":[{}]},"spec":{"holderIdentity":"raw","renewTime":"` + now + `"}}`)).Do(ctx).Error()
	})
}

// rawRound makes n pairs: all objects first, then all statuses.
func rawRound(ctx context.Context, server rest.Interface, prefix string, n int) (created, patched time.Duration, err error) {
	began := time.Now()
	err = each(n, func(i int) error {
		return server.Post().AbsPath(rawPath).SetHeader("Content-Type", "application/json").
			SetHeader("Accept", rawAnswer).Body(rawObject(prefix, i)).Do(ctx).Error()
	})
	if err != nil {
		return 0, 0, err
	}
	created = time.Since(began)
	began = time.Now()
	err = each(n, func(i int) error {
		return server.Patch(types.MergePatchType).AbsPath(rawPath, rawName(prefix, i), "status").
			SetHeader("Accept", rawAnswer).Body([]byte(rawStatus)).Do(ctx).Error()
	})
	return created, time.Since(began), err
}

// each does something n times, several at once.
func each(n int, do func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(rawParallel)
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}

const rawAnswer = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"

func rawName(prefix string, i int) string { return fmt.Sprintf("%s-%05d", prefix, i) }

// rawObject is a deployment as lean as one can be that says what to run.
func rawObject(prefix string, i int) []byte {
	name, id := rawName(prefix, i), strings.Repeat("0123456789abcdef", 4)
	return []byte(`{"apiVersion":"fleet.cattle.io/v1alpha1","kind":"BundleDeployment","metadata":{"name":"` + name +
		`","namespace":"` + rawNamespace + `","labels":{"fleet.cattle.io/bundle-name":"` + name +
		`","fleet.cattle.io/bundle-namespace":"fleet-default","fleet.cattle.io/cluster":"cluster-0000",` +
		`"fleet.cattle.io/cluster-namespace":"fleet-default","fleet.cattle.io/managed":"true"}},` +
		`"spec":{"deploymentID":"s-` + id[:61] + `:` + id + `","content":{"digest":"` + id + `","name":"c-` + id[:40] + `"}}}`)
}

const rawStatus = `{"status":{"appliedDeploymentID":"applied","observedGeneration":1,"ready":true,"nonModified":true,` +
	`"conditions":[{"type":"Ready","status":"True","lastUpdateTime":"2026-01-01T00:00:00Z"}]}}`
