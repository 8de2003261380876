package memapi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// change is one entry of the history of a resource.
type change struct {
	version       uint64
	before, after *object
}

// view is the JSON of an object, or of its metadata.
func (o *object) view(metadataOnly bool) []byte {
	if metadataOnly {
		return o.head()
	}
	return o.raw
}

// inJSON returns what is stored, and therefore JSON.
func inJSON(content map[string]any) []byte {
	raw, err := json.Marshal(content)
	if err != nil {
		panic(fmt.Sprintf("an object that is no JSON was stored: %v", err))
	}
	return raw
}

// encoded returns an object that is ready to be stored.
func encoded(content map[string]any, version uint64) *object {
	meta := content["metadata"].(map[string]any)
	meta["resourceVersion"] = strconv.FormatUint(version, 10)
	return &object{content: content, version: version, raw: inJSON(content), head: sync.OnceValue(func() []byte {
		return inJSON(map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": meta})
	})}
}

// fresh fills in what a server gives to a new object.
func fresh(content map[string]any, uid string) map[string]any {
	meta := content["metadata"].(map[string]any)
	meta["uid"] = uid
	meta["creationTimestamp"] = now()
	for _, field := range []string{"deletionTimestamp", "deletionGracePeriodSeconds", "generation"} {
		delete(meta, field)
	}
	return content
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

// nextUID returns a new one. The caller holds the lock, or has the only
// reference.
func (s *Server) nextUID() string {
	s.uids++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", s.uids)
}

// store puts content under a key and tells everybody. The caller holds the
// lock, or has the only reference.
func (s *Server) store(k *Kind, at key, content map[string]any, what Change) *object {
	resource := schema.GroupResource{Group: k.Group, Resource: k.Resource}
	s.version++
	before := s.objects[resource][at]
	after := encoded(content, s.version)
	if s.objects[resource] == nil {
		s.objects[resource] = map[key]*object{}
	}
	s.objects[resource][at] = after
	s.tell(resource, k, before, after, what)
	if k.Resource == crds {
		if served, ok := defined(content); ok {
			s.kinds[schema.GroupResource{Group: served.Group, Resource: served.Resource}] = served
			s.discovery = nil
		}
	}
	return after
}

// drop removes what is under a key and tells everybody. It returns the object
// as it was last.
func (s *Server) drop(k *Kind, at key, what Change) *object {
	resource := schema.GroupResource{Group: k.Group, Resource: k.Resource}
	before := s.objects[resource][at]
	delete(s.objects[resource], at)
	s.version++
	// A deletion has a version of its own.
	last := encoded(deepCopy(before.content), s.version)
	s.history[resource] = append(s.history[resource], change{version: s.version, before: last})
	s.notify(resource, k, before, nil, what)
	if k.Resource == crds {
		if served, ok := defined(before.content); ok {
			delete(s.kinds, schema.GroupResource{Group: served.Group, Resource: served.Resource})
			s.discovery = nil
		}
	}
	if at.namespace != "" {
		s.emptied(at.namespace)
	}
	return last
}

func (s *Server) tell(resource schema.GroupResource, k *Kind, before, after *object, what Change) {
	s.history[resource] = append(s.history[resource], change{version: s.version, before: before, after: after})
	s.notify(resource, k, before, after, what)
}

func (s *Server) notify(resource schema.GroupResource, k *Kind, before, after *object, what Change) {
	for w := range s.watchers[resource] {
		w.wake()
	}
	if s.observe == nil {
		return
	}
	what.Kind = k
	if before != nil {
		what.Before = before.content
	}
	if after != nil {
		what.After = after.content
	}
	s.observe(what)
}

func deepCopy(content map[string]any) map[string]any {
	return (&unstructured.Unstructured{Object: content}).DeepCopy().Object
}
