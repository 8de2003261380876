// Package memapi is a Kubernetes API server in memory, for tests that need
// thousands of them or a clock of their own. Clients reach it through an
// http.RoundTripper, without a socket, so all of it can run in virtual time
// (testing/synctest).
//
// It does what a client can see: resource versions, conflicts and
// preconditions, generations, the status subresource, finalizers, terminating
// namespaces, server-side apply with managed fields, dry runs, selectors, lists
// and watches (with initial events and bookmarks), metadata-only answers and
// discovery. It does not validate, default, authorize or admit, serves no
// OpenAPI, and knows one version of each kind. What depends on these is tested
// on real API servers.
package memapi
