package meter

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Policy is the audit policy under which requests are counted: metadata only,
// no bodies, and nothing of what the meter itself asks.
const Policy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  nonResourceURLs: ["/metrics", "/readyz*", "/livez*", "/healthz*"]
- level: Metadata
`

// Request is a kind of request, as the audit log tells it.
type Request struct {
	// Agent is the program that asked.
	Agent string `json:"agent"`
	// Verb is the API verb; a watch counts when it is opened.
	Verb string `json:"verb"`
	// Resource is the resource, with its subresource.
	Resource string `json:"resource"`
	// OK is false where the answer was an error.
	OK bool `json:"ok"`
}

// IsWrite tells whether such a request changes something.
func (r Request) IsWrite() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// entry is the part of an audit event that is read.
type entry struct {
	Stage string `json:"stage"`
	// At is a time of fixed width, so that texts compare as times do.
	At        string `json:"stageTimestamp"`
	Verb      string `json:"verb"`
	UserAgent string `json:"userAgent"`
	User      struct {
		Name string `json:"username"`
	} `json:"user"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus *struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// request returns what an entry counts as. Long-running requests count at
// their start, all others when they are done.
func (e *entry) request() (Request, bool) {
	opened := e.Stage == "ResponseStarted"
	if e.ObjectRef == nil || opened != (e.Verb == "watch") {
		return Request{}, false
	}
	r := Request{Agent: program(e.UserAgent), Verb: e.Verb, Resource: e.ObjectRef.Resource, OK: true}
	if e.ObjectRef.Subresource != "" {
		r.Resource += "/" + e.ObjectRef.Subresource
	}
	if e.ResponseStatus != nil {
		r.OK = e.ResponseStatus.Code < 400
	}
	return r, true
}

// program is the name in a user agent: "kube-apiserver/v1.36 (linux)".
func program(agent string) string {
	name, _, _ := strings.Cut(agent, "/")
	name, _, _ = strings.Cut(name, " ")
	return name
}

// Span is when the first and the last request of a kind were answered.
type Span struct{ First, Last time.Time }

// spans remembers the first and last time of each kind.
type spans map[Request][2]string

func (s spans) add(at string, r Request) {
	known, ok := s[r]
	if !ok {
		known = [2]string{at, at}
	}
	s[r] = [2]string{min(known[0], at), max(known[1], at)}
}

func (s spans) times() map[Request]Span {
	out := make(map[Request]Span, len(s))
	for r, texts := range s {
		first, _ := time.Parse(time.RFC3339Nano, texts[0]) // the API server writes them so
		last, _ := time.Parse(time.RFC3339Nano, texts[1])
		out[r] = Span{First: first, Last: last}
	}
	return out
}

// auditLog is the file that the API server appends to.
type auditLog struct{ path string }

// size is how much is written.
func (l auditLog) size() (int64, error) {
	info, err := os.Stat(l.path)
	if err != nil {
		return 0, fmt.Errorf("the API server's audit log: %w", err)
	}
	return info.Size(), nil
}

// read calls see for each request between two offsets.
func (l auditLog) read(from, to int64, see func(e *entry, r Request)) error {
	file, err := os.Open(l.path)
	if err != nil {
		return fmt.Errorf("the API server's audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewReaderSize(io.NewSectionReader(file, from, to-from), 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil // a line that is being written counts next time
		}
		if err != nil {
			return fmt.Errorf("the API server's audit log: %w", err)
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("the API server's audit log, before byte %d: %w", to, err)
		}
		if r, ok := e.request(); ok {
			see(&e, r)
		}
	}
}
