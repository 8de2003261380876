package memapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// watchTimeout ends watches that ask for no other time.
const watchTimeout = 30 * time.Minute

// selection is which objects a list or watch is about.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func (c *call) selection() (selection, error) {
	byLabel, err := labels.Parse(c.Query.Get("labelSelector"))
	if err != nil {
		return selection{}, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(c.Query.Get("fieldSelector"))
	if err != nil {
		return selection{}, apierrors.NewBadRequest(err.Error())
	}
	return selection{namespace: c.Namespace, labels: byLabel, fields: byField}, nil
}

func (s selection) has(o *object) bool {
	if o == nil {
		return false
	}
	u := unstructured.Unstructured{Object: o.content}
	return (s.namespace == "" || u.GetNamespace() == s.namespace) &&
		(s.labels.Empty() || s.labels.Matches(labels.Set(u.GetLabels()))) &&
		(s.fields.Empty() || s.fields.Matches(fields.Set{"metadata.name": u.GetName(), "metadata.namespace": u.GetNamespace()}))
}

// selected returns the objects of a selection, sorted. The caller holds the
// lock.
func (s *Server) selected(c *call, by selection) []*object {
	var keys []key
	all := s.objects[c.resource()]
	for at, o := range all {
		if by.has(o) {
			keys = append(keys, at)
		}
	}
	slices.SortFunc(keys, func(a, b key) int {
		return strings.Compare(a.namespace+"\x00"+a.name, b.namespace+"\x00"+b.name)
	})
	out := make([]*object, 0, len(keys))
	for _, at := range keys {
		out = append(out, all[at])
	}
	return out
}

func (s *Server) list(c *call) *http.Response {
	by, err := c.selection()
	if err != nil {
		return s.failure(c.http, err)
	}
	s.mu.Lock()
	objects, version := s.selected(c, by), s.version
	s.mu.Unlock()
	apiVersion, kind := c.kind.GroupVersion().String(), c.kind.Kind+"List"
	if c.metadataOnly() {
		apiVersion, kind = "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	var body bytes.Buffer
	fmt.Fprintf(&body, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"},"items":[`, kind, apiVersion, version)
	for i, o := range objects {
		if i > 0 {
			body.WriteByte(',')
		}
		body.Write(o.view(c.metadataOnly()))
	}
	body.WriteString("]}")
	return s.reply(c.http, http.StatusOK, body.Bytes())
}

// watcher is one open watch.
type watcher struct {
	server *Server
	call   *call
	by     selection
	ctx    context.Context
	cancel context.CancelFunc
	woken  chan struct{}
	timer  *time.Timer
	// next is the place in the history of what is sent next.
	next    int
	pending []byte
}

func (w *watcher) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

func (s *Server) watch(c *call) *http.Response {
	by, err := c.selection()
	if err != nil {
		return s.failure(c.http, err)
	}
	timeout := watchTimeout
	if seconds, err := strconv.Atoi(c.Query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		timeout = time.Duration(seconds) * time.Second
	}
	ctx, cancel := context.WithCancel(c.http.Context())
	w := &watcher{server: s, call: c, by: by, ctx: ctx, cancel: cancel, woken: make(chan struct{}, 1), timer: time.NewTimer(timeout)}
	s.mu.Lock()
	defer s.mu.Unlock()
	w.begin()
	if s.watchers[c.resource()] == nil {
		s.watchers[c.resource()] = map[*watcher]bool{}
	}
	s.watchers[c.resource()][w] = true
	response := s.reply(c.http, http.StatusOK, nil)
	response.Body, response.ContentLength = w, -1
	return response
}

// begin finds the place to begin at, and what is to be told at once. The caller
// holds the lock.
func (w *watcher) begin() {
	c, s := w.call, w.server
	history := s.history[c.resource()]
	w.next = len(history)
	since := c.Query.Get("resourceVersion")
	initial := c.Query.Get("sendInitialEvents") == "true"
	if initial || since == "" || since == "0" {
		for _, o := range s.selected(c, w.by) {
			w.event("ADDED", o)
		}
		if initial {
			w.bookmark(s.version, true)
		}
		return
	}
	version, err := strconv.ParseUint(since, 10, 64)
	if err != nil {
		return
	}
	w.next, _ = slices.BinarySearchFunc(history, version, func(e change, v uint64) int {
		if e.version <= v {
			return -1
		}
		return 1
	})
}

func (w *watcher) event(kind string, o *object) {
	w.pending = fmt.Appendf(w.pending, `{"type":%q,"object":%s}`+"\n", kind, o.view(w.call.metadataOnly()))
}

func (w *watcher) bookmark(version uint64, initial bool) {
	if w.call.Query.Get("allowWatchBookmarks") != "true" {
		return
	}
	meta := fmt.Sprintf(`"resourceVersion":"%d"`, version)
	if initial {
		meta += `,"annotations":{"k8s.io/initial-events-end":"true"}`
	}
	apiVersion, kind := w.call.kind.GroupVersion().String(), w.call.kind.Kind
	if w.call.metadataOnly() {
		apiVersion, kind = "meta.k8s.io/v1", "PartialObjectMetadata"
	}
	w.pending = fmt.Appendf(w.pending, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{%s}}}`+"\n", kind, apiVersion, meta)
}

// advance takes in what has happened since.
func (w *watcher) advance() {
	s := w.server
	s.mu.Lock()
	defer s.mu.Unlock()
	history := s.history[w.call.resource()]
	for ; w.next < len(history); w.next++ {
		e := history[w.next]
		before, after := w.by.has(e.before), w.by.has(e.after)
		switch {
		case before && after:
			w.event("MODIFIED", e.after)
		case after:
			w.event("ADDED", e.after)
		case before && e.after != nil:
			w.event("DELETED", e.after) // it has left the selection
		case before:
			w.event("DELETED", e.before)
		}
	}
}

// Read waits for events.
func (w *watcher) Read(p []byte) (int, error) {
	for len(w.pending) == 0 {
		if w.advance(); len(w.pending) > 0 {
			break
		}
		select {
		case <-w.woken:
		case <-w.timer.C:
			return 0, io.EOF
		case <-w.ctx.Done():
			return 0, w.ctx.Err()
		}
	}
	n := copy(p, w.pending)
	w.pending = w.pending[n:]
	return n, nil
}

// Close ends the watch.
func (w *watcher) Close() error {
	w.cancel()
	w.timer.Stop()
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	delete(w.server.watchers[w.call.resource()], w)
	return nil
}
