package memapi

import (
	"io"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// Kind is a kind that is served.
type Kind struct {
	schema.GroupVersionKind
	// Resource is its plural name.
	Resource string
	// Namespaced is true where its objects live in a namespace.
	Namespaced bool
	// Status is true where it has a status subresource.
	Status bool
	// Generation is true where changes besides the status are counted.
	Generation bool
}

func builtin(group, kind, resource string, namespaced, counted bool) *Kind {
	return &Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind},
		Resource:         resource, Namespaced: namespaced, Status: counted, Generation: counted,
	}
}

// builtins are the kinds that are served from the beginning.
func builtins() []*Kind {
	namespaces := builtin("", "Namespace", "namespaces", false, false)
	namespaces.Status = true
	return []*Kind{
		namespaces,
		builtin("", "ConfigMap", "configmaps", true, false),
		builtin("", "Secret", "secrets", true, false),
		builtin("", "Service", "services", true, false),
		builtin("", "ServiceAccount", "serviceaccounts", true, false),
		builtin("", "Event", "events", true, false),
		builtin("events.k8s.io", "Event", "events", true, false),
		builtin("", "Pod", "pods", true, true),
		builtin("apps", "Deployment", "deployments", true, true),
		builtin("batch", "Job", "jobs", true, true),
		builtin("coordination.k8s.io", "Lease", "leases", true, false),
		builtin("rbac.authorization.k8s.io", "Role", "roles", true, false),
		builtin("rbac.authorization.k8s.io", "RoleBinding", "rolebindings", true, false),
		builtin("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", false, false),
		builtin("rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings", false, false),
		builtin("apiextensions.k8s.io", "CustomResourceDefinition", crds, false, true),
	}
}

// crds is the resource of custom resource definitions.
const crds = "customresourcedefinitions"

// defined returns the kind that a custom resource definition defines: its
// first served version.
func defined(crd map[string]any) (*Kind, bool) {
	text := func(fields ...string) string {
		s, _, _ := unstructured.NestedString(crd, fields...)
		return s
	}
	k := &Kind{Resource: text("spec", "names", "plural"), Namespaced: text("spec", "scope") == "Namespaced", Generation: true}
	k.Group, k.Kind = text("spec", "group"), text("spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
	for _, v := range versions {
		served, ok := v.(map[string]any)
		if !ok || served["served"] == false {
			continue
		}
		k.Version, _ = served["name"].(string)
		_, k.Status, _ = unstructured.NestedFieldNoCopy(served, "subresources", "status")
		return k, k.Resource != "" && k.Version != ""
	}
	return nil, false
}

// verbs are what can be done with every kind.
var verbs = metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}

// discovered answers what is about no resource, and makes each answer once.
func (s *Server) discovered(r *http.Request) *http.Response {
	s.mu.Lock()
	answer := s.discovery[r.URL.Path]
	s.mu.Unlock()
	if answer != nil {
		return s.reply(r, http.StatusOK, answer)
	}
	response := s.discover(r)
	if response.StatusCode != http.StatusOK {
		return response
	}
	raw, _ := io.ReadAll(response.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.discovery == nil {
		s.discovery = map[string][]byte{}
	}
	s.discovery[r.URL.Path] = raw
	return s.reply(r, http.StatusOK, raw)
}

// discover answers what is about no resource.
func (s *Server) discover(r *http.Request) *http.Response {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/version":
		return s.json(r, http.StatusOK, version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.3"})
	case r.URL.Path == "/api":
		return s.json(r, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case r.URL.Path == "/apis":
		return s.json(r, http.StatusOK, s.groups())
	case len(parts) == 2 && parts[0] == "api":
		return s.resources(r, schema.GroupVersion{Version: parts[1]})
	case len(parts) == 3 && parts[0] == "apis":
		return s.resources(r, schema.GroupVersion{Group: parts[1], Version: parts[2]})
	}
	return s.notServed(r)
}

func (s *Server) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, k := range s.served() {
		if k.Group == "" || slices.ContainsFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == k.Group }) {
			continue
		}
		v := metav1.GroupVersionForDiscovery{GroupVersion: k.GroupVersion().String(), Version: k.Version}
		list.Groups = append(list.Groups, metav1.APIGroup{Name: k.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
	}
	return list
}

func (s *Server) resources(r *http.Request, gv schema.GroupVersion) *http.Response {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	for _, k := range s.served() {
		if k.GroupVersion() != gv {
			continue
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: k.Resource, SingularName: strings.ToLower(k.Kind), Kind: k.Kind, Namespaced: k.Namespaced, Verbs: verbs,
		})
		if k.Status {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: k.Resource + "/status", Kind: k.Kind, Namespaced: k.Namespaced, Verbs: metav1.Verbs{"get", "patch", "update"},
			})
		}
	}
	if len(list.APIResources) == 0 {
		return s.notServed(r)
	}
	return s.json(r, http.StatusOK, list)
}

// served returns all kinds in a stable order.
func (s *Server) served() []*Kind {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*Kind, 0, len(s.kinds))
	for _, k := range s.kinds {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b *Kind) int {
		return strings.Compare(a.Group+"/"+a.Resource, b.Group+"/"+b.Resource)
	})
	return out
}

// notServed is the answer for a path that nothing serves.
func (s *Server) notServed(r *http.Request) *http.Response {
	return s.json(r, http.StatusNotFound, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusNotFound,
		Reason: metav1.StatusReasonNotFound, Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
	})
}
