package memapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// change is what an observer is told of a call.
func (c *call) change() Change {
	return Change{Request: c.Request, Agent: c.http.UserAgent()}
}

func (c *call) dry() bool { return c.Query.Get("dryRun") != "" }

// decode reads an object from the body, JSON or protobuf.
func (c *call) decode() (map[string]any, error) {
	var content map[string]any
	if strings.Contains(c.http.Header.Get("Content-Type"), "protobuf") {
		obj, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(c.body, nil, nil)
		if err != nil {
			return nil, err
		}
		if content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(obj); err != nil {
			return nil, err
		}
	} else if err := unmarshal(c.body, &content); err != nil {
		return nil, err
	}
	content["apiVersion"], content["kind"] = c.kind.GroupVersion().String(), c.kind.Kind
	if _, ok := content["metadata"].(map[string]any); !ok {
		content["metadata"] = map[string]any{}
	}
	return content, nil
}

// unmarshal reads JSON as the API machinery does: whole numbers are int64.
func unmarshal(raw []byte, into *map[string]any) error {
	obj := map[string]any{}
	if err := unstructuredJSON(raw, &obj); err != nil {
		return err
	}
	*into = obj
	return nil
}

func (s *Server) create(c *call) (*object, error) {
	content, err := c.decode()
	if err != nil {
		return nil, err
	}
	meta := content["metadata"].(map[string]any)
	s.mu.Lock()
	defer s.mu.Unlock()
	if name, _ := meta["name"].(string); name == "" {
		prefix, _ := meta["generateName"].(string)
		meta["name"] = fmt.Sprintf("%s%05d", prefix, s.version)
	}
	c.Name, _ = meta["name"].(string)
	if c.kind.Namespaced {
		meta["namespace"] = c.Namespace
	}
	// Before it looks for the name, as admission does.
	if err := s.namespaceOpen(c); err != nil {
		return nil, err
	}
	if s.objects[c.resource()][c.key()] != nil {
		return nil, apierrors.NewAlreadyExists(c.resource(), c.Name)
	}
	return s.add(c, content)
}

// add stores a new object in a namespace that is open. The caller holds the
// lock.
func (s *Server) add(c *call, content map[string]any) (*object, error) {
	fresh(content, s.nextUID())
	if c.kind.Generation {
		content["metadata"].(map[string]any)["generation"] = int64(1)
	}
	if c.kind.Status {
		delete(content, "status")
	}
	switch c.kind.Resource {
	case "namespaces":
		content["status"] = map[string]any{"phase": "Active"}
	case crds:
		content["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	}
	if c.dry() {
		return encoded(content, s.version), nil
	}
	return s.store(c.kind, c.key(), content, c.change()), nil
}

func (s *Server) update(c *call) (*object, error) {
	content, err := c.decode()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.objects[c.resource()][c.key()]
	if before == nil {
		return nil, c.notFound()
	}
	return s.replace(c, before, content)
}

// patch changes an object by a patch of any type.
func (s *Server) patch(c *call) (*object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.objects[c.resource()][c.key()]
	kind := types.PatchType(strings.Split(c.http.Header.Get("Content-Type"), ";")[0])
	if kind == types.ApplyPatchType {
		return s.apply(c, before)
	}
	if before == nil {
		return nil, c.notFound()
	}
	content, err := c.patched(kind, before)
	if err != nil {
		return nil, apierrors.NewBadRequest("the patch does not apply: " + err.Error())
	}
	return s.replace(c, before, content)
}

// patched returns an object as a patch makes it.
func (c *call) patched(kind types.PatchType, before *object) (map[string]any, error) {
	var content map[string]any
	if kind == types.JSONPatchType {
		p, err := jsonpatch.DecodePatch(c.body)
		if err != nil {
			return nil, err
		}
		raw, err := p.Apply(before.raw)
		if err != nil {
			return nil, err
		}
		err = unmarshal(raw, &content)
		return content, err
	}
	if err := unmarshal(c.body, &content); err != nil {
		return nil, err
	}
	return mergePatch(deepCopy(before.content), content), nil
}

// mergePatch is RFC 7396; into is changed.
func mergePatch(into, patch map[string]any) map[string]any {
	for name, value := range patch {
		sub, ok := value.(map[string]any)
		switch {
		case value == nil:
			delete(into, name)
		case !ok:
			into[name] = value
		default:
			below, ok := into[name].(map[string]any)
			if !ok {
				below = map[string]any{}
			}
			into[name] = mergePatch(below, sub)
		}
	}
	return into
}

// replace stores a new state of an object: the part of it that the path is
// about. The caller holds the lock.
func (s *Server) replace(c *call, before *object, content map[string]any) (*object, error) {
	if err := c.same(before, content); err != nil {
		return nil, err
	}
	after := s.merged(c, before, content)
	if err := c.immutable(before.content, after); err != nil {
		return nil, err
	}
	if reflect.DeepEqual(after, before.content) {
		return before, nil
	}
	after, err := s.manage(c, before, after)
	if err != nil {
		return nil, err
	}
	return s.put(c, before, after), nil
}

// put stores a changed object, or lets it go where it was only held by its
// finalizers. The caller holds the lock.
func (s *Server) put(c *call, before *object, after map[string]any) *object {
	if c.dry() {
		return encoded(after, before.version)
	}
	meta := after["metadata"].(map[string]any)
	finalizers, _ := meta["finalizers"].([]any)
	if meta["deletionTimestamp"] != nil && len(finalizers) == 0 && c.kind.Resource != "namespaces" {
		return s.drop(c.kind, c.key(), c.change())
	}
	return s.store(c.kind, c.key(), after, c.change())
}

// same tells whether the writer means the object that there is.
func (c *call) same(before *object, content map[string]any) error {
	meta, _ := content["metadata"].(map[string]any)
	live := before.content["metadata"].(map[string]any)
	if uid, ok := meta["uid"].(string); ok && uid != "" && uid != live["uid"] {
		return apierrors.NewInvalid(c.kind.GroupKind(), c.Name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "uid"), uid, "field is immutable"),
		})
	}
	if version, ok := meta["resourceVersion"].(string); ok && version != "" && version != strconv.FormatUint(before.version, 10) {
		return c.conflict("the object has been modified; please apply your changes to the latest version and try again")
	}
	return nil
}

// immutable refuses to change what says that it is immutable.
func (c *call) immutable(before, after map[string]any) error {
	if before["immutable"] != true {
		return nil
	}
	for _, part := range []string{"data", "binaryData", "immutable"} {
		if !reflect.DeepEqual(before[part], after[part]) {
			return apierrors.NewInvalid(c.kind.GroupKind(), c.Name, field.ErrorList{
				field.Forbidden(field.NewPath(part), "field is immutable when `immutable` is set"),
			})
		}
	}
	return nil
}

// merged puts together what the path may change and what it may not.
func (s *Server) merged(c *call, before *object, content map[string]any) map[string]any {
	after, base := content, before.content
	if c.Subresource == "status" {
		after = deepCopy(base)
		if status, ok := content["status"]; ok {
			after["status"] = status
		} else {
			delete(after, "status")
		}
		return after
	}
	after["apiVersion"], after["kind"] = base["apiVersion"], base["kind"]
	meta, _ := after["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		after["metadata"] = meta
	}
	for name, value := range base["metadata"].(map[string]any) {
		switch name {
		case "name", "namespace", "uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion":
			meta[name] = value
		case "managedFields":
			if _, given := meta[name]; !given {
				meta[name] = value
			}
		}
	}
	if c.kind.Status {
		delete(after, "status")
		if status, ok := base["status"]; ok {
			after["status"] = status
		}
	}
	s.count(c.kind, base, after)
	return after
}

// count raises the generation where more than the status was changed.
func (s *Server) count(k *Kind, before, after map[string]any) {
	if !k.Generation {
		return
	}
	parts := map[string]bool{}
	for name := range before {
		parts[name] = true
	}
	for name := range after {
		parts[name] = true
	}
	delete(parts, "metadata")
	if k.Status {
		delete(parts, "status")
	}
	for name := range parts {
		if !reflect.DeepEqual(before[name], after[name]) {
			meta := after["metadata"].(map[string]any)
			generation, _ := meta["generation"].(int64)
			meta["generation"] = generation + 1
			return
		}
	}
}

func (s *Server) delete(c *call) (*object, error) {
	var options metav1.DeleteOptions
	if len(c.body) > 0 && !strings.Contains(c.http.Header.Get("Content-Type"), "protobuf") {
		if err := json.Unmarshal(c.body, &options); err != nil {
			return nil, err
		}
	} else if len(c.body) > 0 {
		obj, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(c.body, nil, &options)
		if decoded, ok := obj.(*metav1.DeleteOptions); ok && err == nil {
			options = *decoded
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.objects[c.resource()][c.key()]
	if before == nil {
		return nil, c.notFound()
	}
	if p := options.Preconditions; p != nil {
		uid, _, _ := unstructured.NestedString(before.content, "metadata", "uid")
		if p.UID != nil && string(*p.UID) != uid {
			return nil, c.conflict("Precondition failed: UID in precondition: %s, UID in object meta: %s", *p.UID, uid)
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != strconv.FormatUint(before.version, 10) {
			return nil, c.conflict("Precondition failed: ResourceVersion in precondition: %s, ResourceVersion in object meta: %d", *p.ResourceVersion, before.version)
		}
	}
	if c.dry() {
		return before, nil
	}
	return s.remove(c.kind, c.key(), c.change()), nil
}

// remove deletes an object, or marks it deleted where something holds it. The
// caller holds the lock.
func (s *Server) remove(k *Kind, at key, what Change) *object {
	before := s.objects[kindResource(k)][at]
	meta := before.content["metadata"].(map[string]any)
	finalizers, _ := meta["finalizers"].([]any)
	isNamespace := k.Resource == "namespaces" && k.Group == ""
	if len(finalizers) == 0 && !isNamespace {
		return s.drop(k, at, what)
	}
	if meta["deletionTimestamp"] != nil {
		return before
	}
	after := deepCopy(before.content)
	meta = after["metadata"].(map[string]any)
	meta["deletionTimestamp"] = now()
	if generation, ok := meta["generation"].(int64); ok {
		meta["generation"] = generation + 1
	}
	if isNamespace {
		after["status"] = map[string]any{"phase": "Terminating"}
		s.terminate(at.name)
	}
	return s.store(k, at, after, what)
}
