package soak_test

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// model is what people want of the fleet: what the script has written to the
// hub, and nothing that was observed.
type model struct {
	names    names
	clusters []*cluster
	bundles  map[string]*bundle
	// version is of the whole fleet: a newer content has a larger one, in
	// whichever bundle.
	version int
}

// names keep the worlds on one API server apart.
type names struct {
	// fleet is the namespace of bundles and clusters, hub the hub's own.
	fleet, hub string
	// agent is where agents keep their state, shop where objects are put.
	agent, shop string
}

func namesOf(id string) names {
	return names{fleet: "fleet-" + id, hub: "hub-" + id, agent: "agent-" + id, shop: "shop-" + id}
}

// cluster is one spoke. Its ring decides which bundles it gets.
type cluster struct {
	name, ring string
	// away is true while the hub has no record of it.
	away bool
}

// bundle is one bundle.
type bundle struct {
	name string
	// rings are where it goes.
	rings []string
	// objects are the names of its ConfigMaps, with the version of each.
	objects map[string]int
	// bad adds an object of a kind that no cluster has.
	bad             bool
	paused, correct bool
	// traits are given to it when it is made.
	traits
	// failing lets the hook before its present content fail.
	failing bool
	// repo is where it comes from; nil for one that people write on the hub.
	repo *repo
	// stays is true for the one that its repository always has.
	stays bool
}

// traits are what a bundle has besides its objects.
type traits struct {
	// hooks are Jobs before and after each release, and around its end.
	hooks bool
	// waves is a Deployment that must be ready before the objects come.
	waves bool
	// chart makes it one that clusters render, with a random value in each
	// object.
	chart bool
}

// rings that clusters are in.
var rings = []string{"blue", "green"}

func (b *bundle) targets(c *cluster) bool { return slices.Contains(b.rings, c.ring) }

// spec is the bundle as it is written to the hub.
func (m *model) spec(b *bundle) fleet.BundleSpec {
	spec := fleet.BundleSpec{Paused: b.paused, Resources: []fleet.BundleResource{{Name: "objects.yaml", Content: m.text(b)}}}
	if b.chart {
		spec.Resources[0].Name = "templates/objects.yaml"
		spec.Resources = append(spec.Resources, fleet.BundleResource{Name: "Chart.yaml", Content: "apiVersion: v2\nname: app\nversion: 1.0.0\n"})
		spec.Render = fleet.RenderAgent
	}
	if b.correct {
		spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true}
	}
	for _, ring := range b.rings {
		spec.Targets = append(spec.Targets, fleet.BundleTarget{
			ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"ring": ring}},
		})
	}
	return spec
}

// on returns the bundles of a cluster, sorted by name. What a cluster has stays
// while the hub has no record of it.
func (m *model) on(c *cluster) []*bundle {
	var out []*bundle
	for _, name := range slices.Sorted(maps.Keys(m.bundles)) {
		if b := m.bundles[name]; b.targets(c) {
			out = append(out, b)
		}
	}
	return out
}

// wanted returns the objects of a cluster: name to owner and version.
func (m *model) wanted(c *cluster) map[string]string {
	out := map[string]string{}
	for _, b := range m.on(c) {
		for name, version := range b.objects {
			out[name] = fmt.Sprintf("%s/%s version %d", m.names.fleet, b.name, version)
		}
		content := fmt.Sprintf("%s/%s content %s", m.names.fleet, b.name, b.id())
		if b.waves {
			out[b.app()] = content
		}
		if b.hooks {
			out[b.name+"-check"] = content
		}
	}
	return out
}

// next counts the version up.
func (m *model) next() int {
	m.version++
	return m.version
}
