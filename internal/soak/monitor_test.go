package soak_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/memapi"
	clusternames "github.com/flotilla-sh/flotilla/internal/names"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// agentName is the user agent of agents.
const agentName = "flotilla-agent"

// monitor sees every write of every program, and knows what none of them may
// ever do, whatever faults there are.
type monitor struct {
	fail  func(format string, args ...any)
	names names

	mu sync.Mutex
	// wishes are, for each object of a bundle on a cluster, how people have
	// wanted it.
	wishes map[wish]wished
	// live is what the clusters have, newest the newest version that an agent
	// has ever applied.
	live   map[place]liveObject
	newest map[place]int
	// contents are the stored payloads.
	contents map[string]content.Parcel
	releases
}

type wish struct{ cluster, bundle, object string }

type wished int

const (
	// always: since it was first wanted it was wanted all the time.
	always wished = iota + 1
	// dropped: it was unwanted at some time.
	dropped
)

type place struct{ cluster, object string }

// liveObject is one object of a cluster.
type liveObject struct {
	bundle, version string
	// byHand is true where a person was the last to write it.
	byHand bool
}

func newMonitor(n names, fail func(format string, args ...any)) *monitor {
	return &monitor{
		fail: fail, names: n, wishes: map[wish]wished{}, live: map[place]liveObject{},
		newest: map[place]int{}, contents: map[string]content.Parcel{}, releases: newReleases(),
	}
}

// note takes in what people want from now on.
func (m *monitor) note(now *model) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	wanted := map[wish]bool{}
	for _, c := range now.clusters {
		for _, b := range now.on(c) {
			for object := range b.objects {
				wanted[wish{c.name, now.names.fleet + "/" + b.name, object}] = true
			}
		}
	}
	for w := range m.wishes {
		if !wanted[w] {
			m.wishes[w] = dropped
		}
	}
	for w := range wanted {
		if m.wishes[w] == 0 {
			m.wishes[w] = always
		}
	}
	m.releases.note(now)
}

// spoke watches the API server of a cluster.
func (m *monitor) spoke(cluster string) func(memapi.Change) {
	return func(c memapi.Change) {
		if namespaceOf(c) != m.names.shop {
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		switch c.Kind.Kind {
		case "Job":
			m.job(cluster, c)
		case "Deployment":
			m.app(cluster, c)
		}
		if c.Kind.Kind != "ConfigMap" {
			return
		}
		at := place{cluster, nameOf(c)}
		byAgent := c.Agent == agentName
		if c.After == nil {
			if byAgent {
				m.deleted(at)
			}
			m.live[at] = liveObject{byHand: !byAgent}
			return
		}
		after := liveObject{byHand: !byAgent}
		after.bundle, _, _ = unstructured.NestedString(c.After, "metadata", "annotations", fleet.BundleAnnotation)
		after.version, _, _ = unstructured.NestedString(c.After, "data", "version")
		m.live[at] = after
		if version, err := strconv.Atoi(after.version); err == nil && byAgent {
			if version < m.newest[at] {
				m.fail("downgrade: the agent of %s wrote version %d of %s, and had written %d before", cluster, version, at.object, m.newest[at])
			}
			m.newest[at] = max(version, m.newest[at])
			m.written(at, after, version, c)
		}
	}
}

// deleted judges what an agent has deleted.
func (m *monitor) deleted(at place) {
	owner := m.live[at].bundle
	m.log(at.cluster, "deleted", at.object)
	delete(m.randoms, place{at.cluster, owner + " " + at.object})
	if m.wishes[wish{at.cluster, owner, at.object}] == always {
		m.fail("the agent of %s deleted %s, which bundle %s has always had", at.cluster, at.object, owner)
	}
}

// hub watches the API server of the hub.
func (m *monitor) hub(c memapi.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case c.Kind.Kind == "ConfigMap" && namespaceOf(c) == fleet.ContentNamespace && c.After != nil:
		holder := &corev1.ConfigMap{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c.After, holder); err == nil {
			m.contents[nameOf(c)] = content.FromConfigMap(holder)
		}
	case c.Kind.Kind == "Secret" && strings.HasPrefix(nameOf(c), "c-") && c.After != nil:
		holder := &corev1.Secret{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c.After, holder); err == nil {
			m.contents[nameOf(c)] = content.FromSecret(holder)
		}
	case c.Kind.Kind == "BundleDeployment" && c.After != nil && c.Request.Subresource == "status":
		m.reported(c)
	}
}

// reported judges what an agent says of a deployment.
func (m *monitor) reported(c memapi.Change) {
	bd := &fleet.BundleDeployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c.After, bd); err != nil {
		m.fail("a deployment is none: %v", err)
		return
	}
	if bd.Status.Display.State != string(fleet.Ready) || bd.Status.ObservedGeneration != bd.Generation || bd.Spec.Removal != nil || bd.Spec.Content == nil {
		return
	}
	if bd.Spec.Content.Source {
		m.rendered(bd)
		return
	}
	manifest, _, err := content.FetchObjects(context.Background(), m, nowhere{}, content.Ref{Digest: bd.Spec.Content.Digest, Name: bd.Spec.Content.Name})
	if err != nil {
		m.fail("deployment %s is said to be ready, and its content: %v", bd.Name, err)
		return
	}
	for _, raw := range manifest.Objects {
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(raw); err == nil {
			m.has(bd, obj)
		}
	}
}

// has judges whether an object that a ready deployment has is as it wants it.
func (m *monitor) has(bd *fleet.BundleDeployment, obj *unstructured.Unstructured) {
	switch obj.GetKind() {
	case "ConfigMap":
		want, _, _ := unstructured.NestedString(obj.Object, "data", "version")
		got := m.live[place{m.cluster(bd), obj.GetName()}]
		if !got.byHand && got.version != want {
			m.fail("false Ready: %s is said to be ready on %s, where %s has version %q, not %q", bd.Name, m.cluster(bd), obj.GetName(), got.version, want)
		}
	case "Deployment":
		if bundle := ownerOf(obj, bd); !m.open[gate{m.cluster(bd), bundle, obj.GetAnnotations()[contentMark], "app"}] {
			m.fail("false Ready: %s is said to be ready on %s, where %s never was", bd.Name, m.cluster(bd), obj.GetName())
		}
	}
}

// cluster returns the name of a deployment's cluster.
func (m *monitor) cluster(bd *fleet.BundleDeployment) string {
	for i := 1; ; i++ {
		if name := fmt.Sprintf("c%d", i); i > 9 || clusternames.ClusterNamespace(m.names.fleet, name) == bd.Namespace {
			return name
		}
	}
}

// Get returns a stored payload.
func (m *monitor) Get(_ context.Context, ref content.Ref) (content.Parcel, error) {
	if data, ok := m.contents[ref.Name]; ok {
		return data, nil
	}
	return content.Parcel{}, fmt.Errorf("%s was never stored", ref.Name)
}

// nowhere keeps no payloads.
type nowhere struct{}

// Kept returns nothing.
func (nowhere) Kept(content.Ref) ([]byte, bool) { return nil, false }

// Take forgets.
func (nowhere) Take(content.Ref, []byte) {}

func object(c memapi.Change) *unstructured.Unstructured {
	if c.After != nil {
		return &unstructured.Unstructured{Object: c.After}
	}
	return &unstructured.Unstructured{Object: c.Before}
}

func nameOf(c memapi.Change) string      { return object(c).GetName() }
func namespaceOf(c memapi.Change) string { return object(c).GetNamespace() }
