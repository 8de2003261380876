// Package capabilities reads what an agent reported of its cluster: the
// version and the kinds that it serves.
package capabilities

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-sh/flotilla/internal/cache"
	"github.com/flotilla-sh/flotilla/internal/digest"
	"github.com/flotilla-sh/flotilla/internal/render"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// Reader reads reports. Clusters that report the same share one value, so that
// a thousand of them cost the memory of the few that differ.
type Reader struct {
	client client.Reader
	parsed *cache.LRU[render.Capabilities]
	// last are the reports that were read last, by namespace.
	last sync.Map
}

// report is a report of one version.
type report struct {
	version string
	value   render.Capabilities
}

// parsedRoom is how many bytes of reports are remembered as parsed. What
// clusters report now is held beside that.
const parsedRoom = 8 << 20

// NewReader returns a Reader that reads ConfigMaps through c.
func NewReader(c client.Reader) *Reader {
	return &Reader{client: c, parsed: cache.New[render.Capabilities](parsedRoom)}
}

// Of returns what the cluster with this namespace on the hub reported; the
// zero value where it has not reported yet.
func (r *Reader) Of(ctx context.Context, namespace string) (render.Capabilities, error) {
	obj := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: namespace, Name: fleet.CapabilitiesName}
	err := r.client.Get(ctx, key, obj, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return render.Capabilities{}, nil
	}
	if err != nil {
		return render.Capabilities{}, fmt.Errorf("read what the cluster of namespace %s offers: %w", namespace, err)
	}
	if last, ok := r.last.Load(namespace); ok && last.(report).version == obj.ResourceVersion && obj.ResourceVersion != "" {
		return last.(report).value, nil
	}
	value := r.shared(obj.Data[fleet.CapabilitiesVersionKey], obj.Data[fleet.CapabilitiesAPIsKey])
	r.last.Store(namespace, report{obj.ResourceVersion, value})
	return value, nil
}

// shared parses a report, once for all clusters that report the same.
func (r *Reader) shared(version, apis string) render.Capabilities {
	key := digest.Of([]byte(version), []byte(apis))
	if known, ok := r.parsed.Get(key); ok {
		return known
	}
	parsed := render.Capabilities{KubeVersion: version, APIs: render.ParseAPIs(apis)}
	r.parsed.Put(key, parsed, len(apis)+len(key))
	return parsed
}
