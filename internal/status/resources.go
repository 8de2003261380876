package status

import (
	"strings"

	fleet "github.com/flotilla-sh/flotilla/pkg/apis/fleet/v1alpha1"
)

// What a GitRepo lists of its objects: those that are not as they should be, on
// the first clusters of each bundle and state.
const (
	maxResources           = 25
	maxClustersPerResource = 10
)

// States of an object in a GitRepo's list.
const (
	resourceModified = "Modified"
	resourceMissing  = "Missing"
	resourceOrphaned = "Orphaned"
	resourceNotReady = "NotReady"
)

// resourceList collects objects over clusters.
type resourceList struct {
	all []fleet.Resource
	at  map[resourceKey]int
}

type resourceKey struct{ apiVersion, kind, namespace, name string }

func resourcesOf(r *repo) []fleet.Resource {
	l := resourceList{at: map[resourceKey]int{}}
	for _, u := range r.sorted() {
		for state := range ready {
			for _, cluster := range u.counter.sorted[state][:min(maxClustersPerResource, u.counter.count[state])] {
				l.collect(cluster, u.counter.entries[cluster].detail)
			}
		}
	}
	return l.all
}

func (l *resourceList) collect(cluster string, d *Detail) {
	if d == nil {
		return
	}
	for _, m := range d.Modified {
		l.add(cluster, resourceKey{m.APIVersion, m.Kind, m.Namespace, m.Name}, fleet.Resource{State: modifiedState(m)})
	}
	for _, n := range d.NonReady {
		x := fleet.Resource{State: n.Summary.State, Error: n.Summary.Error, Transitioning: n.Summary.Transitioning}
		if x.State == "" {
			x.State = resourceNotReady
		}
		if len(n.Summary.Message) > 0 {
			x.Message = cut(n.Summary.Message[0])
		}
		l.add(cluster, resourceKey{n.APIVersion, n.Kind, n.Namespace, n.Name}, x)
	}
}

func modifiedState(m fleet.ModifiedStatus) string {
	switch {
	case m.Delete:
		return resourceOrphaned
	case m.Create:
		return resourceMissing
	default:
		return resourceModified
	}
}

// add puts an object on the list, or one more cluster to an object. The state
// shown is the one on the first cluster.
func (l *resourceList) add(cluster string, key resourceKey, found fleet.Resource) {
	at, ok := l.at[key]
	if !ok {
		if len(l.all) == maxResources {
			l.all[maxResources-1].IncompleteState = true
			return
		}
		at = len(l.all)
		l.at[key] = at
		found.APIVersion, found.Kind, found.Type = key.apiVersion, key.kind, typeOf(key)
		found.Namespace, found.Name, found.ID = key.namespace, key.name, idOf(key)
		l.all = append(l.all, found)
	}
	list := clusterList(&l.all[at].PerClusterState, found.State)
	if len(*list) < maxClustersPerResource {
		*list = append(*list, cluster)
	}
}

func clusterList(p *fleet.PerClusterState, state string) *[]string {
	switch state {
	case resourceModified:
		return &p.Modified
	case resourceMissing:
		return &p.Missing
	case resourceOrphaned:
		return &p.Orphaned
	default:
		return &p.NotReady
	}
}

// typeOf qualifies a kind by its group, for Rancher's user interface.
func typeOf(k resourceKey) string {
	group, _, ok := strings.Cut(k.apiVersion, "/")
	if !ok {
		return strings.ToLower(k.kind)
	}
	return group + "." + strings.ToLower(k.kind)
}

func idOf(k resourceKey) string {
	if k.namespace == "" {
		return k.name
	}
	return k.namespace + "/" + k.name
}
