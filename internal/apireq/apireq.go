// Package apireq reads from an HTTP request what it asks of a Kubernetes API
// server, and from the answer whether that was done.
package apireq

import (
	"net/http"
	"net/url"
	"strings"
)

// The verbs of a request.
const (
	Get    = "get"
	List   = "list"
	Watch  = "watch"
	Create = "create"
	Update = "update"
	Patch  = "patch"
	Delete = "delete"
	// Other is a request that is about no resource, as discovery.
	Other = "other"
)

// Request is what is asked.
type Request struct {
	// Verb is one of the verbs above.
	Verb string
	// Group, Version and Resource name the kind; empty for Other.
	Group, Version, Resource string
	// Namespace, Name and Subresource are empty where there is none.
	Namespace, Name, Subresource string
	// Query holds the options.
	Query url.Values
}

// Writes tells whether the request changes what is stored.
func (r Request) Writes() bool {
	switch r.Verb {
	case Create, Update, Patch, Delete:
		return r.Query.Get("dryRun") == ""
	}
	return false
}

// Cached tells whether the request may be answered from a cache that is
// behind.
func (r Request) Cached() bool {
	return (r.Verb == Get || r.Verb == List) && r.Query.Get("resourceVersion") == "0"
}

// Path is the resource with its subresource.
func (r Request) Path() string {
	if r.Subresource == "" {
		return r.Resource
	}
	return r.Resource + "/" + r.Subresource
}

// String names the request for people: "patch configmaps shop/a".
func (r Request) String() string {
	parts := []string{r.Verb, r.Path()}
	switch {
	case r.Namespace != "" && r.Name != "":
		parts = append(parts, r.Namespace+"/"+r.Name)
	case r.Namespace+r.Name != "":
		parts = append(parts, r.Namespace+r.Name)
	}
	return strings.Join(parts, " ")
}

// Of reads a request.
func Of(r *http.Request) Request {
	out := Request{Verb: Other, Query: r.URL.Query()}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		out.Version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		out.Group, out.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return out
	}
	// A namespace's own path is "namespaces/NAME[/status]".
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		out.Namespace, parts = parts[1], parts[2:]
	}
	out.Resource = parts[0]
	if len(parts) > 1 {
		out.Name = parts[1]
	}
	if len(parts) > 2 {
		out.Subresource = strings.Join(parts[2:], "/")
	}
	out.Verb = verb(r.Method, out)
	return out
}

func verb(method string, r Request) string {
	switch method {
	case http.MethodPost:
		return Create
	case http.MethodPut:
		return Update
	case http.MethodPatch:
		return Patch
	case http.MethodDelete:
		return Delete
	}
	switch {
	case r.Query.Get("watch") == "true" || r.Query.Get("watch") == "1":
		return Watch
	case r.Name == "":
		return List
	}
	return Get
}
