package memapi

import (
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/yaml"
)

// apply is a server-side apply. The caller holds the lock.
func (s *Server) apply(c *call, before *object) (*object, error) {
	raw, err := yaml.YAMLToJSON(c.body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	var wanted map[string]any
	if err := unmarshal(raw, &wanted); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	live := map[string]any{"apiVersion": c.kind.GroupVersion().String(), "kind": c.kind.Kind, "metadata": map[string]any{}}
	if before != nil {
		if err := c.same(before, wanted); err != nil {
			return nil, err
		}
		live = deepCopy(before.content)
	} else if err := s.namespaceOpen(c); err != nil {
		return nil, err
	} else if uid, _, _ := unstructured.NestedString(wanted, "metadata", "uid"); uid != "" {
		return nil, c.conflict("uid mismatch: the provided object specified uid %s, and no existing object was found", uid)
	}
	for _, field := range []string{"uid", "resourceVersion"} {
		unstructured.RemoveNestedField(wanted, "metadata", field)
	}
	manager, err := fieldManager(c)
	if err != nil {
		return nil, err
	}
	out, err := manager.Apply(&unstructured.Unstructured{Object: live}, &unstructured.Unstructured{Object: wanted},
		c.Query.Get("fieldManager"), c.Query.Get("force") == "true")
	if err != nil {
		return nil, err
	}
	after := out.(*unstructured.Unstructured).Object
	if before == nil {
		return s.add(c, after)
	}
	after = s.merged(c, before, after)
	if err := c.immutable(before.content, after); err != nil {
		return nil, err
	}
	if equalButTimes(before.content, after) {
		return before, nil
	}
	return s.put(c, before, after), nil
}

// manage keeps the managed fields of an object up to date after an update.
// Objects have them from the first apply on.
func (s *Server) manage(c *call, before *object, after map[string]any) (map[string]any, error) {
	given, _, _ := unstructured.NestedSlice(after, "metadata", "managedFields")
	had, _, _ := unstructured.NestedSlice(before.content, "metadata", "managedFields")
	if len(had) == 0 || !reflect.DeepEqual(had, given) {
		return after, nil // none, or set by the writer itself
	}
	manager, err := fieldManager(c)
	if err != nil {
		return nil, err
	}
	name := c.Query.Get("fieldManager")
	if name == "" {
		name = c.http.UserAgent()
	}
	out, err := manager.Update(&unstructured.Unstructured{Object: deepCopy(before.content)}, &unstructured.Unstructured{Object: after}, name)
	if err != nil {
		return nil, err
	}
	return out.(*unstructured.Unstructured).Object, nil
}

// equalButTimes compares objects without the times of their managed fields: an
// apply that changes nothing writes nothing.
func equalButTimes(a, b map[string]any) bool {
	return reflect.DeepEqual(withoutTimes(a), withoutTimes(b))
}

func withoutTimes(content map[string]any) map[string]any {
	content = deepCopy(content)
	entries, _, _ := unstructured.NestedSlice(content, "metadata", "managedFields")
	for _, e := range entries {
		if entry, ok := e.(map[string]any); ok {
			delete(entry, "time")
		}
	}
	if len(entries) > 0 {
		_ = unstructured.SetNestedSlice(content, entries, "metadata", "managedFields")
	}
	return content
}

// fieldManager returns the manager for the kind and subresource of a call. It
// knows no schemas: lists are atomic.
func fieldManager(c *call) (*managedfields.FieldManager, error) {
	plain := converter{}
	return managedfields.NewDefaultCRDFieldManager(managedfields.NewDeducedTypeConverter(), plain, plain, plain,
		c.kind.GroupVersionKind, c.kind.GroupVersion(), c.Subresource, nil)
}

// converter knows one version of each kind, and no defaults.
type converter struct{}

// Convert is never called: there is one version.
func (converter) Convert(any, any, any) error { return nil }

// ConvertToVersion returns the object.
func (converter) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// ConvertFieldLabel returns the label.
func (converter) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default does nothing.
func (converter) Default(runtime.Object) {}

// New returns an empty object.
func (converter) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(kind)
	return obj, nil
}
