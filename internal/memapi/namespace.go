package memapi

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// terminateAfter is how long the namespace controller takes to begin.
const terminateAfter = 50 * time.Millisecond

var namespaces = schema.GroupResource{Resource: "namespaces"}

func newNamespace(name, uid string) map[string]any {
	return fresh(map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
		"status": map[string]any{"phase": "Active"},
	}, uid)
}

func kindResource(k *Kind) schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// namespaceOpen tells whether an object can be made where a call wants it. The
// caller holds the lock.
func (s *Server) namespaceOpen(c *call) error {
	if !c.kind.Namespaced {
		return nil
	}
	namespace := s.objects[namespaces][key{name: c.Namespace}]
	if namespace == nil {
		return apierrors.NewNotFound(namespaces, c.Namespace)
	}
	if namespace.content["metadata"].(map[string]any)["deletionTimestamp"] == nil {
		return nil
	}
	err := apierrors.NewForbidden(c.resource(), c.Name, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", c.Namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace", Message: "namespace " + c.Namespace + " is being terminated",
	})
	return err
}

// terminate plans to delete everything in a namespace.
func (s *Server) terminate(namespace string) {
	time.AfterFunc(terminateAfter, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for resource, objects := range s.objects {
			for at := range objects {
				if at.namespace == namespace && s.kinds[resource] != nil {
					s.remove(s.kinds[resource], at, Change{Agent: "namespace-controller"})
				}
			}
		}
		s.emptied(namespace)
	})
}

// emptied lets a terminating namespace go when nothing is in it. The caller
// holds the lock.
func (s *Server) emptied(namespace string) {
	at := key{name: namespace}
	live := s.objects[namespaces][at]
	if live == nil || live.content["metadata"].(map[string]any)["deletionTimestamp"] == nil {
		return
	}
	for _, objects := range s.objects {
		for other := range objects {
			if other.namespace == namespace {
				return
			}
		}
	}
	s.drop(s.kinds[namespaces], at, Change{Agent: "namespace-controller"})
}

// unstructuredJSON reads JSON with whole numbers as int64.
func unstructuredJSON(raw []byte, into *map[string]any) error {
	if !json.Valid(raw) {
		return fmt.Errorf("the body is no JSON")
	}
	return utiljson.Unmarshal(raw, into)
}
