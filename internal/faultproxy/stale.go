package faultproxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/flotilla-sh/flotilla/internal/apireq"
)

// keptAnswers is how many answers to a list are kept; the oldest is served.
const keptAnswers = 3

// earlier remembers answers to lists, to serve them from a cache that is
// behind.
type earlier struct {
	mu    sync.Mutex
	lists map[string][]kept
}

type kept struct {
	header http.Header
	body   []byte
}

// key tells lists apart, whatever version they ask for.
func key(r *http.Request, q apireq.Request) string {
	query := url.Values{}
	for _, option := range []string{"labelSelector", "fieldSelector"} {
		query.Set(option, q.Query.Get(option))
	}
	return r.URL.Path + "?" + query.Encode() + " " + r.Header.Get("Accept")
}

// keep remembers the answer to a list.
func (e *earlier) keep(q apireq.Request, r *http.Request, response *http.Response) error {
	if q.Verb != apireq.List || response.StatusCode != http.StatusOK || q.Query.Get("continue") != "" ||
		response.Header.Get("Content-Encoding") != "" {
		return nil
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return fmt.Errorf("read the answer to %s: %w", q, err)
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lists == nil {
		e.lists = map[string][]kept{}
	}
	k := key(r, q)
	e.lists[k] = append(e.lists[k], kept{header: response.Header.Clone(), body: body})
	e.lists[k] = e.lists[k][max(0, len(e.lists[k])-keptAnswers):]
	return nil
}

// forget drops all answers.
func (e *earlier) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lists = nil
}

// find returns an answer as a cache that is behind would give it: an earlier
// list, or that an object is not there yet.
func (e *earlier) find(r *http.Request, q apireq.Request) *http.Response {
	if q.Verb == apireq.Get {
		body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"not in the cache","reason":"NotFound","details":{"group":%q,"kind":%q,"name":%q},"code":404}`,
			q.Group, q.Resource, q.Name)
		return reply(r, http.StatusNotFound, http.Header{"Content-Type": {"application/json"}}, []byte(body))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.lists[key(r, q)]
	if len(all) == 0 {
		return nil
	}
	return reply(r, http.StatusOK, all[0].header.Clone(), all[0].body)
}
