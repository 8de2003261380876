package soak_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/flotilla-sh/flotilla/internal/content"
	"github.com/flotilla-sh/flotilla/internal/memapi"
	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// releases is what a monitor knows of how contents come to the clusters.
type releases struct {
	// traits are those of each bundle, and contents with the contents that
	// have an object in a version.
	traits map[string]traits
	with   map[version][]string
	// open are the gates that a content has passed on a cluster: its hooks
	// before the objects and its first wave.
	open map[gate]bool
	// succeeded are the hooks that have, since their bundle was last wanted.
	succeeded map[hookRun]bool
	// randoms are the values that a content was given when it was rendered.
	randoms map[place]string
	// told is what happened on each cluster, in order.
	told map[string][]string
}

type version struct {
	bundle, object string
	version        int
}

type gate struct{ cluster, bundle, content, kind string }

type hookRun struct{ cluster, bundle, job, content string }

func newReleases() releases {
	return releases{
		traits: map[string]traits{}, with: map[version][]string{}, open: map[gate]bool{},
		succeeded: map[hookRun]bool{}, randoms: map[place]string{}, told: map[string][]string{},
	}
}

func (r *releases) note(now *model) {
	wanted := map[[2]string]bool{}
	for _, c := range now.clusters {
		for _, b := range now.on(c) {
			wanted[[2]string{c.name, now.names.fleet + "/" + b.name}] = true
		}
	}
	for run := range r.succeeded {
		if !wanted[[2]string{run.cluster, run.bundle}] {
			delete(r.succeeded, run)
		}
	}
	for _, b := range now.bundles {
		name := now.names.fleet + "/" + b.name
		r.traits[name] = b.traits
		for object, v := range b.objects {
			at := version{name, object, v}
			if id := b.id(); !slices.Contains(r.with[at], id) {
				r.with[at] = append(r.with[at], id)
			}
		}
	}
}

// forget forgets what a bundle's contents have come to, as the bundle is gone
// from all clusters. What ran on while it was taken off counts for nothing.
func (m *monitor) forget(bundle string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.succeeded, func(run hookRun, _ bool) bool { return run.bundle == bundle })
	maps.DeleteFunc(m.open, func(g gate, _ bool) bool { return g.bundle == bundle })
	maps.DeleteFunc(m.randoms, func(at place, _ string) bool { return strings.HasPrefix(at.object, bundle+" ") })
}

func (r *releases) log(cluster, what, name string) {
	r.told[cluster] = append(r.told[cluster], what+" "+name)
}

// forgetTold forgets what has happened.
func (m *monitor) forgetTold() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.told)
}

// tellings are what has happened on a cluster, in order.
func (m *monitor) tellings(cluster string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.told[cluster])
}

// hasMade tells whether an object was made on a cluster.
func (w *world) hasMade(cluster, name string) bool {
	return slices.Contains(w.watch.tellings(cluster), "made "+name)
}

// job judges what becomes of a Job, which is a hook.
func (m *monitor) job(cluster string, c memapi.Change) {
	obj := object(c)
	bundle, id := obj.GetAnnotations()[fleet.BundleAnnotation], obj.GetAnnotations()[contentMark]
	name := obj.GetName()[strings.LastIndex(obj.GetName(), "-")+1:]
	run := hookRun{cluster, bundle, obj.GetName(), id}
	switch {
	case c.After == nil:
		m.log(cluster, "deleted", obj.GetName())
	case c.Before == nil:
		m.log(cluster, "made", obj.GetName())
		if m.succeeded[run] {
			m.fail("hook %s of content %s runs again on %s, where it has succeeded", obj.GetName(), id, cluster)
		}
		if name == "tell" && !m.passed(cluster, bundle, id) {
			m.fail("hook %s of content %s runs on %s before the objects are there", obj.GetName(), id, cluster)
		}
	case ended(obj) == "Complete":
		m.log(cluster, "succeeded", obj.GetName())
		if name != "drain" && name != "clean" { // they do not know for which removal
			m.succeeded[run] = true
		}
		if name == "migrate" && m.was(cluster, bundle, obj.GetName(), id) {
			m.open[gate{cluster, bundle, id, "hook"}] = true
		}
	}
}

// was tells whether the hook that runs before migrate has succeeded.
func (m *monitor) was(cluster, bundle, migrate, id string) bool {
	check := strings.TrimSuffix(migrate, "migrate") + "check"
	if !m.succeeded[hookRun{cluster, bundle, check, id}] && m.wantedOn(cluster, bundle) {
		m.fail("hook %s of content %s has run on %s, and the one before it has not succeeded", migrate, id, cluster)
		return false
	}
	return true
}

func (m *monitor) wantedOn(cluster, bundle string) bool {
	for w, wish := range m.wishes {
		if w.cluster == cluster && w.bundle == bundle && wish == always {
			return true
		}
	}
	return false
}

// passed tells whether a content has passed all gates of its bundle.
func (m *monitor) passed(cluster, bundle, id string) bool {
	t := m.traits[bundle]
	return (!t.hooks || m.open[gate{cluster, bundle, id, "hook"}]) && (!t.waves || m.open[gate{cluster, bundle, id, "app"}])
}

// app takes in how a Deployment does.
func (m *monitor) app(cluster string, c memapi.Change) {
	if c.After == nil || c.Request.Subresource != "status" {
		return
	}
	obj := object(c)
	m.open[gate{cluster, obj.GetAnnotations()[fleet.BundleAnnotation], obj.GetAnnotations()[contentMark], "app"}] = true
}

// written judges an object that an agent has written.
func (m *monitor) written(at place, now liveObject, v int, c memapi.Change) {
	m.log(at.cluster, "wrote", fmt.Sprintf("%s %d", at.object, v))
	ids := m.with[version{now.bundle, at.object, v}]
	if len(ids) > 0 && !slices.ContainsFunc(ids, func(id string) bool { return m.passed(at.cluster, now.bundle, id) }) {
		m.fail("version %d of %s is written on %s before hooks or waves of bundle %s let it", v, at.object, at.cluster, now.bundle)
	}
	random, _, _ := unstructured.NestedString(c.After, "data", "random")
	if random == "" {
		return
	}
	id := object(c).GetAnnotations()[contentMark]
	key := place{at.cluster, now.bundle + " " + at.object}
	if was := m.randoms[key]; strings.HasPrefix(was, id+" ") && was != id+" "+random {
		m.fail("the random value in %s of bundle %s is made anew on %s for the same content: %s, was %s", at.object, now.bundle, at.cluster, id+" "+random, was)
	}
	m.randoms[key] = id + " " + random
}

// rendered judges a ready deployment of a source that its cluster renders.
func (m *monitor) rendered(bd *fleet.BundleDeployment) {
	files, err := content.FetchFiles(context.Background(), m, content.Ref{Digest: bd.Spec.Content.Digest, Name: bd.Spec.Content.Name})
	if err != nil {
		m.fail("deployment %s is said to be ready, and its content: %v", bd.Name, err)
		return
	}
	for _, f := range files {
		if f.Path != "templates/objects.yaml" {
			continue
		}
		docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(f.Data), 4096)
		for {
			obj := &unstructured.Unstructured{}
			if err := docs.Decode(&obj.Object); err != nil {
				break
			}
			m.has(bd, obj)
		}
	}
}

func ownerOf(obj *unstructured.Unstructured, bd *fleet.BundleDeployment) string {
	if owner := obj.GetAnnotations()[fleet.BundleAnnotation]; owner != "" {
		return owner
	}
	return bd.Labels[fleet.BundleNamespaceLabel] + "/" + bd.Labels[fleet.BundleLabel]
}

// ended returns the condition by which a Job has ended.
func ended(job *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if kind, _ := condition["type"].(string); kind == "Complete" || kind == "Failed" {
			return kind
		}
	}
	return ""
}
