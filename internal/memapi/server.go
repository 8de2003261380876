package memapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flotilla-sh/flotilla/internal/apireq"
)

// Server is an API server. It is safe for concurrent use.
type Server struct {
	// observe is told every change, in order.
	observe func(Change)

	mu      sync.Mutex
	version uint64
	uids    int
	kinds   map[schema.GroupResource]*Kind
	objects map[schema.GroupResource]map[key]*object
	// history holds every change of each resource.
	history  map[schema.GroupResource][]change
	watchers map[schema.GroupResource]map[*watcher]bool
	// discovery are the answers about the kinds that are served now.
	discovery map[string][]byte
}

// Change is one change of one object, as an observer sees it. Before and After
// are nil where the object was created and where it is gone; neither may be
// modified.
type Change struct {
	Request       apireq.Request
	Agent         string
	Kind          *Kind
	Before, After map[string]any
}

// key names an object of a kind.
type key struct{ namespace, name string }

// object is one stored object; it is never changed, only replaced.
type object struct {
	content map[string]any
	version uint64
	raw     []byte        // its JSON
	head    func() []byte // its JSON as PartialObjectMetadata
}

// firstVersion keeps small numbers free: some clients use them for "none".
const firstVersion = 1000

// New returns a server that serves the built-in kinds. observe, where it is not
// nil, is called for every change with the server's lock held: it must not call
// the server.
func New(observe func(Change)) *Server {
	s := &Server{
		observe: observe, version: firstVersion,
		kinds:   map[schema.GroupResource]*Kind{},
		objects: map[schema.GroupResource]map[key]*object{},
		history: map[schema.GroupResource][]change{}, watchers: map[schema.GroupResource]map[*watcher]bool{},
	}
	for _, k := range builtins() {
		s.kinds[schema.GroupResource{Group: k.Group, Resource: k.Resource}] = k
	}
	for _, name := range []string{"default", "kube-system"} {
		s.store(s.kinds[namespaces], key{name: name}, newNamespace(name, s.nextUID()), Change{})
	}
	return s
}

// Config reaches the server.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: "http://memory", Transport: s, QPS: -1}
}

// RoundTrip answers a request.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	q := apireq.Of(r)
	if q.Verb == apireq.Other {
		return s.discovered(r), nil
	}
	s.mu.Lock()
	kind := s.kinds[schema.GroupResource{Group: q.Group, Resource: q.Resource}]
	s.mu.Unlock()
	if kind == nil || kind.Version != q.Version || q.Subresource != "" && (q.Subresource != "status" || !kind.Status) {
		return s.notServed(r), nil
	}
	return s.serve(&call{Request: q, http: r, kind: kind, body: body}), nil
}

// Forget drops all that the server has, for the sake of memory: whoever still
// holds it has no use for it.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects, s.history, s.observe = map[schema.GroupResource]map[key]*object{}, map[schema.GroupResource][]change{}, nil
}

// call is one request about a kind.
type call struct {
	apireq.Request
	http *http.Request
	kind *Kind
	body []byte
}

func (c *call) key() key { return key{c.Namespace, c.Name} }

func (c *call) resource() schema.GroupResource {
	return schema.GroupResource{Group: c.kind.Group, Resource: c.kind.Resource}
}

func (c *call) notFound() error { return apierrors.NewNotFound(c.resource(), c.Name) }

func (c *call) conflict(format string, args ...any) error {
	return apierrors.NewConflict(c.resource(), c.Name, fmt.Errorf(format, args...))
}

// metadataOnly tells whether the client wants the metadata alone.
func (c *call) metadataOnly() bool {
	return strings.Contains(c.http.Header.Get("Accept"), "as=PartialObjectMetadata")
}

func (s *Server) serve(c *call) *http.Response {
	var (
		out  *object
		code = http.StatusOK
		err  error
	)
	switch c.Verb {
	case apireq.Watch:
		return s.watch(c)
	case apireq.List:
		return s.list(c)
	case apireq.Get:
		out, err = s.get(c)
	case apireq.Create:
		code = http.StatusCreated
		out, err = s.create(c)
	case apireq.Update:
		out, err = s.update(c)
	case apireq.Patch:
		out, err = s.patch(c)
	case apireq.Delete:
		if c.Name == "" {
			return s.failure(c.http, apierrors.NewMethodNotSupported(c.resource(), "deletecollection"))
		}
		out, err = s.delete(c)
	}
	if err != nil {
		return s.failure(c.http, err)
	}
	return s.reply(c.http, code, out.view(c.metadataOnly()))
}

func (s *Server) get(c *call) (*object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[c.resource()][c.key()]; o != nil {
		return o, nil
	}
	return nil, c.notFound()
}

func (s *Server) json(r *http.Request, code int, v any) *http.Response {
	raw, err := json.Marshal(v)
	if err != nil {
		return s.failure(r, err)
	}
	return s.reply(r, code, raw)
}

func (s *Server) failure(r *http.Request, err error) *http.Response {
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		status = apierrors.NewBadRequest(err.Error())
	}
	answer := status.Status()
	answer.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return s.json(r, int(answer.Code), answer)
}

func (s *Server) reply(r *http.Request, code int, body []byte) *http.Response {
	return &http.Response{
		StatusCode: code, Status: strconv.Itoa(code) + " " + http.StatusText(code),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}
